"""Definitions of CloudEvents: one section, `attributes`, whose `type` says which events the definition describes.

Spec: CloudEvents 1.0, "Context Attributes", "Type System". Rules § 8.1, § 12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from annals.domain.compat import uris
from annals.domain.compat.catalog import metaschema
from annals.domain.compat.catalog.metaschema import MalformedDefinition, Section, Sections, one_of, parsable_by
from annals.domain.compat.catalog.value_mapping import (
    PropertyTypes,
    as_media_type,
    document_value,
    open_properties,
    section_leftovers,
)
from annals.domain.compat.ids import NONCHARACTERS
from annals.domain.messaging.findings.unchecked_values import as_mapping
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

ENVELOPE: Final = "CloudEvents/1.0"
DATASCHEMA: Final = ("attributes", "dataschema")

_NAME: Final = re.compile(r"[a-z0-9]+\Z")
_INTEGER_LIMIT: Final = 2**31
_PROPERTY_TYPES: Final = {
    "specversion": PropertyTypes("string"),
    "type": PropertyTypes("string"),
    "time": PropertyTypes("timestamp"),
    "dataschema": PropertyTypes("uri", "uritemplate"),
}
_KNOWN_ATTRIBUTES: Final = ("specversion", "id", "type", "source", "subject", "time", "dataschema", "datacontenttype")


def _string_error(value: Json) -> str | None:
    if not isinstance(value, str):
        return "it is not a string"
    return "it has a character that a String of CloudEvents cannot have" if NONCHARACTERS.search(value) else None


def _value_error(value: Json) -> str | None:
    """The check for values of extension attributes."""
    if isinstance(value, str):
        return _string_error(value)
    if isinstance(value, bool) or metaschema.integer(-_INTEGER_LIMIT, _INTEGER_LIMIT - 1)(value) is None:
        return None
    return "it is neither a string, nor a boolean, nor an integer of 32 bits"


def _name_error(name: str) -> str | None:
    if _NAME.match(name) and name != "data":
        return None
    return "names of attributes have lower-case letters and digits only, and are not 'data'"


SECTIONS: Final = {
    "attributes": Section(
        {
            "type": _string_error,
            "specversion": one_of("1.0"),
            "id": _string_error,
            "source": parsable_by(uris.check_reference),
            "subject": _string_error,
            "time": metaschema.timestamp,
            "datacontenttype": metaschema.media_type,
            "dataschema": parsable_by(uris.check_uri),
        },
        check_others=_value_error,
        check_name=_name_error,
    )
}


def check(sections: Sections) -> None:
    """Checks that there is a type and that it is constant. Raises: MalformedDefinition."""
    type = as_mapping(sections.get("attributes")).get("type")
    if not type:
        raise MalformedDefinition("a CloudEvent needs a type that is not empty", "attributes", "type")
    if metaschema.has_braces(type):
        raise MalformedDefinition("it is a constant and cannot have placeholders", "attributes", "type")


def to_attributes(sections: Sections, leftovers: Sections) -> dict[str, Json]:
    metadata = open_properties("attributes", sections["attributes"], leftovers, xids.NAME, _PROPERTY_TYPES)
    type = as_media_type(sections["attributes"].get("datacontenttype"))
    constant = {} if type is None else {"datacontenttype": type}
    return {"envelope": ENVELOPE, "envelopemetadata": metadata, **constant}


def to_document(attributes: Mapping[str, Json], leftovers: Sections) -> Sections:
    attribute_leftovers = section_leftovers(leftovers, "attributes")
    members = {
        name: document_value(
            as_mapping(property),
            attribute_leftovers.get(name),
            *(("boolean", "integer") if name not in _KNOWN_ATTRIBUTES else ()),
        )
        for name, property in as_mapping(attributes.get("envelopemetadata")).items()
    }
    members |= {name: value for name, value in attribute_leftovers.items() if not xids.NAME.match(name)}
    if attributes.get("dataschemauri"):
        members.setdefault("dataschema", attributes["dataschemauri"])
    return {"attributes": members}
