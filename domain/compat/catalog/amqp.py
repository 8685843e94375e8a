"""Definitions of AMQP 1.0 messages, section by section as such a message has them.

Spec: AMQP 1.0, part 3, sections 2.1 to 2.9. Rules § 8.2, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain.compat import uris
from domain.compat.catalog import metaschema
from domain.compat.catalog.holding import STRING, Slot, as_scalar, declared, is_held, leave, noted, stated
from domain.compat.catalog.metaschema import Section, Sections, one_of, parsed_by
from domain.findings.values import mapping
from domain.jsontext import Json
from domain.model.shape import KEY

PROTOCOL: Final = "AMQP/1.0"
DATASCHEMA: Final = ("applicationdata", "dataschema")

#: Members of the header and the defaults with which the model fills them in, so that those say nothing by themselves.
_HEADER: Final[Mapping[str, Json]] = {"durable": False, "priority": 4, "ttl": None}
#: Members of the properties: the name that the registry has for each, and what it can hold.
_PROPERTIES: Final = {
    "messageid": ("message-id", STRING),
    "userid": ("user-id", Slot("binary", "uritemplate")),
    "to": ("to", STRING),
    "subject": ("subject", STRING),
    "replyto": ("reply-to", STRING),
    "correlationid": ("correlation-id", STRING),
    "contenttype": ("content-type", STRING),
    "contentencoding": ("content-encoding", Slot("string", "string")),
    "absoluteexpirytime": ("absolute-expiry-time", Slot("timestamp")),
    "creationtime": ("creation-time", Slot("timestamp")),
    "groupid": ("group-id", STRING),
    "groupsequence": ("group-sequence", Slot("integer")),
    "replytogroupid": ("reply-to-group-id", STRING),
}
_OPEN: Final = {
    "applicationproperties": "application-properties",
    "messageannotations": "message-annotations",
    "deliveryannotations": "delivery-annotations",
    "footer": "footer",
}


def _symbol(name: str) -> str | None:
    return None if name.isascii() else "a symbol of AMQP is ASCII"


def _sequence(value: Json) -> str | None:
    return None if isinstance(value, str) or metaschema.is_integer(value) else "it is no string and no integer"


SECTIONS: Final = {
    "header": Section(
        {
            "durable": metaschema.boolean,
            "priority": metaschema.integer(0, 255),
            "ttl": metaschema.integer(0),
        }
    ),
    "properties": Section(
        {
            **dict.fromkeys(_PROPERTIES, metaschema.text),
            "userid": metaschema.binary,
            "absoluteexpirytime": metaschema.timestamp,
            "creationtime": metaschema.timestamp,
            "groupsequence": _sequence,
        }
    ),
    "applicationdata": Section(
        {"dataschema": parsed_by(uris.check_reference), "amqpencoding": one_of("Data", "Value", "Sequence")}
    ),
    **{name: Section(others=metaschema.scalar, names=_symbol) for name in _OPEN},
}


def check(sections: Sections) -> None:
    """Nothing beyond its sections."""


def to_attributes(sections: Sections, left: Sections) -> dict[str, Json]:
    options = {
        "properties": _properties(mapping(sections.get("properties")), left),
        **{own: _open(section, mapping(sections.get(section)), left) for section, own in _OPEN.items()},
        "header": _header(mapping(sections.get("header")), left),
    }
    if "amqpencoding" in mapping(sections.get("applicationdata")):
        leave(left, "applicationdata", "amqpencoding", sections["applicationdata"]["amqpencoding"])
    return {"protocol": PROTOCOL, "protocoloptions": {name: value for name, value in options.items() if value}}


def to_document(attributes: Mapping[str, Json], left: Sections) -> Sections:
    options, rest = mapping(attributes.get("protocoloptions")), noted(left, "applicationdata")
    done: Sections = {
        "header": _stated_header(mapping(options.get("header")), noted(left, "header")),
        "properties": _stated_properties(mapping(options.get("properties")), noted(left, "properties")),
        "applicationdata": {"amqpencoding": rest["amqpencoding"]} if "amqpencoding" in rest else {},
    }
    for section, own in _OPEN.items():
        done[section] = _stated_open(mapping(options.get(own)), noted(left, section))
    return {name: members for name, members in done.items() if members}


def _header(members: Mapping[str, Json], left: Sections) -> dict[str, Json]:
    held: dict[str, Json] = {}
    for name, value in members.items():
        meant = as_scalar(value)
        if meant is not None:
            held[name] = meant
        if meant is None or meant == _HEADER[name]:
            leave(left, "header", name, value)
    return held


def _stated_header(header: Mapping[str, Any], rest: Mapping[str, Json]) -> dict[str, Json]:
    changed = {name: header[name] for name, default in _HEADER.items() if header.get(name, default) != default}
    return {name: value for name in _HEADER if (value := changed.get(name, rest.get(name))) is not None}


def _properties(members: Mapping[str, Json], left: Sections) -> dict[str, Json]:
    held: dict[str, Json] = {}
    for name, value in members.items():
        own, slot = _PROPERTIES[name]
        held[own] = declared(value, slot)
        if not is_held(held[own], value):
            leave(left, "properties", name, value)
    return held


def _stated_properties(properties: Mapping[str, Any], rest: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: stated(mapping(properties[own]), rest.get(name))
        for name, (own, _) in _PROPERTIES.items()
        if own in properties
    }


def _open(section: str, members: Mapping[str, Json], left: Sections) -> dict[str, Json]:
    held: dict[str, Json] = {}
    for name, value in members.items():
        property = declared(value)
        if KEY.match(name):
            held[name] = property
        if name not in held or not is_held(property, value):
            leave(left, section, name, value)
    return held


def _stated_open(properties: Mapping[str, Any], rest: Mapping[str, Json]) -> dict[str, Json]:
    """What attributes can hold and do not, a client of the registry has removed."""
    held = {
        name: stated(mapping(property), rest.get(name), "boolean", "integer", "number")
        for name, property in properties.items()
    }
    return held | {name: value for name, value in rest.items() if not KEY.match(name)}
