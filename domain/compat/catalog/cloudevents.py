"""Definitions of CloudEvents: one section, `attributes`, whose `type` says which events are meant.

Spec: CloudEvents 1.0, "Context Attributes", "Type System". Rules § 8.1, § 12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from domain import xid as xids
from domain.compat import uris
from domain.compat.catalog import metaschema
from domain.compat.catalog.holding import STRING, Slot, as_media_type, declared, is_held, leave, noted, stated
from domain.compat.catalog.metaschema import Malformed, Section, Sections, one_of, parsed_by
from domain.compat.ids import NO_TEXT
from domain.findings.values import mapping
from domain.jsontext import Json

ENVELOPE: Final = "CloudEvents/1.0"
DATASCHEMA: Final = ("attributes", "dataschema")

_NAME: Final = re.compile(r"[a-z0-9]+\Z")
_LARGEST: Final = 2**31
_SLOTS: Final = {
    "specversion": Slot("string"),
    "type": Slot("string"),
    "time": Slot("timestamp"),
    "dataschema": Slot("uri", "uritemplate"),
}
_KNOWN: Final = ("specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype")


def _string(value: Json) -> str | None:
    if not isinstance(value, str):
        return "it is no string"
    return "it has a character that no String of CloudEvents has" if NO_TEXT.search(value) else None


def _value(value: Json) -> str | None:
    """The kind of extensions."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool) or metaschema.integer(-_LARGEST, _LARGEST - 1)(value) is None:
        return None
    return "it is no string, no boolean and no integer of 32 bits"


def _name(name: str) -> str | None:
    if _NAME.match(name) and name != "data":
        return None
    return "names of attributes are lower-case letters and digits, and not data"


SECTIONS: Final = {
    "attributes": Section(
        {
            "type": _string,
            "specversion": one_of("1.0"),
            "id": _string,
            "source": parsed_by(uris.check_reference),
            "subject": _string,
            "time": metaschema.timestamp,
            "datacontenttype": metaschema.media_type,
            "dataschema": parsed_by(uris.check_uri),
        },
        others=_value,
        names=_name,
    )
}


def check(sections: Sections) -> None:
    """There is a type, and it is constant."""
    type = mapping(sections.get("attributes")).get("type")
    if not type:
        raise Malformed("a CloudEvent has a type, which is not empty", "attributes", "type")
    if metaschema.has_braces(type):
        raise Malformed("it is constant, and has no placeholders", "attributes", "type")


def to_attributes(sections: Sections, left: Sections) -> dict[str, Json]:
    metadata: dict[str, Json] = {}
    for name, value in sections["attributes"].items():
        property = declared(value, _SLOTS.get(name, STRING))
        if xids.NAME.match(name):
            metadata[name] = property
        if name not in metadata or not is_held(property, value):
            leave(left, "attributes", name, value)
    type = as_media_type(sections["attributes"].get("datacontenttype"))
    constant = {} if type is None else {"datacontenttype": type}
    return {"envelope": ENVELOPE, "envelopemetadata": metadata, **constant}


def to_document(attributes: Mapping[str, Json], left: Sections) -> Sections:
    rest = noted(left, "attributes")
    members = {
        name: stated(mapping(property), rest.get(name), *(("boolean", "integer") if name not in _KNOWN else ()))
        for name, property in mapping(attributes.get("envelopemetadata")).items()
    }
    members |= {name: value for name, value in rest.items() if not xids.NAME.match(name)}
    if attributes.get("dataschemauri"):
        members.setdefault("dataschema", attributes["dataschemauri"])
    return {"attributes": members}
