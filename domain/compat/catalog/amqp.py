"""Definitions of AMQP 1.0 messages, with the sections of such a message.

Spec: AMQP 1.0, part 3, sections 2.1 to 2.9. Rules § 8.2, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.compat import uris
from annals.domain.compat.catalog import metaschema
from annals.domain.compat.catalog.metaschema import Section, Sections, one_of, parsable_by
from annals.domain.compat.catalog.value_mapping import (
    STRING,
    PropertyTypes,
    add_leftover,
    as_scalar,
    document_value,
    has_value,
    open_properties,
    property_object,
    section_leftovers,
)
from annals.domain.messaging.findings.unchecked_values import as_mapping
from annals.domain.model.compiled_attributes import MAP_KEY
from annals.domain.values.json_text import Json

PROTOCOL: Final = "AMQP/1.0"
DATASCHEMA: Final = ("applicationdata", "dataschema")

#: Members of the header with the defaults that the model fills in, so a default need not come from the document.
_HEADER: Final[Mapping[str, Json]] = {"durable": False, "priority": 4, "ttl": None}
#: Members of the properties: the registry's name of each, and the types that it can hold.
_PROPERTIES: Final = {
    "messageid": ("message-id", STRING),
    "userid": ("user-id", PropertyTypes("binary", "uritemplate")),
    "to": ("to", STRING),
    "subject": ("subject", STRING),
    "replyto": ("reply-to", STRING),
    "correlationid": ("correlation-id", STRING),
    "contenttype": ("content-type", STRING),
    "contentencoding": ("content-encoding", PropertyTypes("string", "string")),
    "absoluteexpirytime": ("absolute-expiry-time", PropertyTypes("timestamp")),
    "creationtime": ("creation-time", PropertyTypes("timestamp")),
    "groupid": ("group-id", STRING),
    "groupsequence": ("group-sequence", PropertyTypes("integer")),
    "replytogroupid": ("reply-to-group-id", STRING),
}
_OPEN_SECTIONS: Final = {
    "applicationproperties": "application-properties",
    "messageannotations": "message-annotations",
    "deliveryannotations": "delivery-annotations",
    "footer": "footer",
}


def _symbol_error(name: str) -> str | None:
    return None if name.isascii() else "a symbol of AMQP has to be ASCII"


def _sequence_error(value: Json) -> str | None:
    return None if isinstance(value, str) or metaschema.is_integer(value) else "it is neither a string nor an integer"


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
            "groupsequence": _sequence_error,
        }
    ),
    "applicationdata": Section(
        {"dataschema": parsable_by(uris.check_reference), "amqpencoding": one_of("Data", "Value", "Sequence")}
    ),
    **{name: Section(check_others=metaschema.scalar, check_name=_symbol_error) for name in _OPEN_SECTIONS},
}


def check(sections: Sections) -> None:
    """Checks nothing: SECTIONS contain all rules."""


def to_attributes(sections: Sections, leftovers: Sections) -> dict[str, Json]:
    options = {
        "properties": _properties(as_mapping(sections.get("properties")), leftovers),
        **{
            option_name: open_properties(section, as_mapping(sections.get(section)), leftovers, MAP_KEY)
            for section, option_name in _OPEN_SECTIONS.items()
        },
        "header": _header_options(as_mapping(sections.get("header")), leftovers),
    }
    if "amqpencoding" in as_mapping(sections.get("applicationdata")):
        add_leftover(leftovers, "applicationdata", "amqpencoding", sections["applicationdata"]["amqpencoding"])
    return {"protocol": PROTOCOL, "protocoloptions": {name: value for name, value in options.items() if value}}


def to_document(attributes: Mapping[str, Json], leftovers: Sections) -> Sections:
    options, payload_leftovers = (
        as_mapping(attributes.get("protocoloptions")),
        section_leftovers(leftovers, "applicationdata"),
    )
    document: Sections = {
        "header": _header_members(as_mapping(options.get("header")), section_leftovers(leftovers, "header")),
        "properties": _property_members(
            as_mapping(options.get("properties")), section_leftovers(leftovers, "properties")
        ),
        "applicationdata": {"amqpencoding": payload_leftovers["amqpencoding"]}
        if "amqpencoding" in payload_leftovers
        else {},
    }
    for section, option_name in _OPEN_SECTIONS.items():
        document[section] = _open_members(as_mapping(options.get(option_name)), section_leftovers(leftovers, section))
    return {name: members for name, members in document.items() if members}


def _header_options(members: Mapping[str, Json], leftovers: Sections) -> dict[str, Json]:
    header: dict[str, Json] = {}
    for name, value in members.items():
        scalar = as_scalar(value)
        if scalar is not None:
            header[name] = scalar
        if scalar is None or scalar == _HEADER[name]:
            add_leftover(leftovers, "header", name, value)
    return header


def _header_members(header: Mapping[str, Any], leftovers: Mapping[str, Json]) -> dict[str, Json]:
    non_default = {name: header[name] for name, default in _HEADER.items() if header.get(name, default) != default}
    return {name: value for name in _HEADER if (value := non_default.get(name, leftovers.get(name))) is not None}


def _properties(members: Mapping[str, Json], leftovers: Sections) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    for name, value in members.items():
        property_name, property_types = _PROPERTIES[name]
        properties[property_name] = property_object(value, property_types)
        if not has_value(properties[property_name], value):
            add_leftover(leftovers, "properties", name, value)
    return properties


def _property_members(properties: Mapping[str, Any], leftovers: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: document_value(as_mapping(properties[property_name]), leftovers.get(name))
        for name, (property_name, _) in _PROPERTIES.items()
        if property_name in properties
    }


def _open_members(properties: Mapping[str, Any], leftovers: Mapping[str, Json]) -> dict[str, Json]:
    """The members of an open section.

    A leftover counts only if attributes cannot have its name; a client of the registry removed any other.
    """
    members = {
        name: document_value(as_mapping(property), leftovers.get(name), "boolean", "integer", "number")
        for name, property in properties.items()
    }
    return members | {name: value for name, value in leftovers.items() if not MAP_KEY.match(name)}
