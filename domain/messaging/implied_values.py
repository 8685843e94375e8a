"""Values of CloudEvents attributes that follow from a message's other attributes.

Spec: message 1.0-rc4, "CloudEvents/1.0"; rule MS-37.
"""

from __future__ import annotations

from typing import Any, Final

from annals.domain.registry.entities import Attributes

#: Media types of data by the name of its schema's format, in lower case.
MEDIA_TYPES: Final = {
    "jsonschema": "application/json",
    "jsonstructure": "application/json",
    "avro": "application/avro",
    "protobuf": "application/protobuf",
    "xsd": "application/xml",
    "xmlschema": "application/xml",
}
_ENVELOPE: Final = "cloudevents/1.0"
_METADATA: Final = "envelopemetadata"
_ATTRIBUTE_TYPES: Final = {"datacontenttype": "string", "dataschema": "uritemplate"}


def add_implied_values(attributes: Attributes) -> tuple[Attributes, tuple[str, ...]]:
    """A message with its implied values, and JSON pointers to these; the same object if none is missing."""
    if str(attributes.get("envelope")).lower() != _ENVELOPE:
        return attributes, ()
    metadata: dict[str, Any] = dict(attributes.get(_METADATA) or {})
    implied = {"datacontenttype": _datacontenttype(attributes), "dataschema": attributes.get("dataschemauri")}
    pointers = []
    for name, value in implied.items():
        declared = metadata.get(name) or {}
        if value is not None and declared.get("value") is None:
            metadata[name] = {"type": _ATTRIBUTE_TYPES[name], "required": False, **declared, "value": value}
            pointers.append(f"/{_METADATA}/{name}/value")
    return ({**attributes, _METADATA: metadata} if pointers else attributes), tuple(pointers)


def format_media_type(format: str) -> str | None:
    """The media type of data with a schema of a format (`Avro/1.11`); None if it is unknown."""
    return MEDIA_TYPES.get(format.partition("/")[0].lower())


def _datacontenttype(attributes: Attributes) -> str | None:
    """The type of the data: the message's own, unless that is the type of an envelope around it (MS-38)."""
    is_structured = (attributes.get("envelopeoptions") or {}).get("mode") == "structured"
    datacontenttype = attributes.get("datacontenttype")
    if datacontenttype is not None and not is_structured:
        return str(datacontenttype)
    return format_media_type(str(attributes.get("dataschemaformat", "")))
