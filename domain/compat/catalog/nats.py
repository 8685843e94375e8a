"""Definitions of NATS messages, which have no metaschema: known members are mapped, all others are stored unchanged.

Rules § 8.4, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.compat.catalog.metaschema import Sections
from annals.domain.compat.catalog.value_mapping import (
    as_media_type,
    as_template,
    as_text,
    has_plain_placeholders,
    has_value,
    section_leftovers,
)
from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.unchecked_values import as_mapping, as_sequence
from annals.domain.model.validation.values import fits_in_header
from annals.domain.values.json_text import Json

SECTIONS: Final = None
DATASCHEMA: Final = ("payload", "dataschema")

_MESSAGE: Final = {"subject": "subject", "replyto": "reply"}


def check(sections: Sections) -> None:
    """Checks nothing: any document is valid."""


def to_attributes(sections: Sections, leftovers: Sections) -> dict[str, Json]:
    message, payload = as_mapping(sections.get("message")), as_mapping(sections.get("payload"))
    options: dict[str, Json] = {
        option_name: option_value
        for name, option_name in _MESSAGE.items()
        if (option_value := as_template(option_name, message.get(name))) is not None
    }
    headers = [
        _header_row(name, value)
        for name, value in as_mapping(sections.get("headers")).items()
        if _is_storable(name, value)
    ]
    if headers:
        options["headers"] = headers
    type = as_media_type(payload.get("contenttype"))
    leftovers |= _remaining_sections(sections, options, type)
    constant = {} if type is None else {"datacontenttype": type}
    return {"protocol": names.NATS, "protocoloptions": options, **constant}


def to_document(attributes: Mapping[str, Json], leftovers: Sections) -> Sections:
    options = as_mapping(attributes.get("protocoloptions"))
    message = {name: options[option_name] for name, option_name in _MESSAGE.items() if option_name in options}
    headers = _header_members(as_sequence(options.get("headers")), section_leftovers(leftovers, "headers"))
    type = attributes.get("datacontenttype")
    attribute_sections = {
        "message": message,
        "headers": headers,
        "payload": {} if type is None else {"contenttype": type},
    }
    document = dict(leftovers)
    if isinstance(leftovers.get("headers"), dict):
        document["headers"] = {
            name: value for name, value in leftovers["headers"].items() if not _is_storable(name, value)
        }
    for section, members in attribute_sections.items():
        if members:
            document[section] = {**section_leftovers(document, section), **members}
    return {
        section: members for section, members in document.items() if members != {} or section not in attribute_sections
    }


def _remaining_sections(sections: Sections, options: Mapping[str, Json], type: str | None) -> Sections:
    """The sections without the values that attributes hold, and without the schema reference."""
    held_names: dict[str, set[str]] = {
        "message": {name for name, option_name in _MESSAGE.items() if option_name in options},
        "headers": {
            row["name"] for row in options.get("headers", ()) if has_value(row, sections["headers"][row["name"]])
        },
        "payload": {"dataschema", *(() if type is None else ("contenttype",))},
    }
    remaining = dict(sections)
    for section, members in held_names.items():
        if isinstance(sections.get(section), dict):
            remaining[section] = {name: value for name, value in sections[section].items() if name not in members}
            if not remaining[section]:
                del remaining[section]
    return remaining


def _header_row(name: str, value: str) -> dict[str, Json]:
    text = as_text("value", value)
    return {"name": name, **({} if text is None else {"value": text}), "required": True}


def _header_members(headers: Any, leftovers: Mapping[str, Json]) -> dict[str, Json]:
    """The headers; of several with one name, the last one."""
    rows = [as_mapping(row) for row in headers]
    return {name: row.get("value", leftovers.get(name, "")) for row in rows if isinstance(name := row.get("name"), str)}


def _is_storable(name: str, value: Json) -> bool:
    """Whether attributes can have the header at all; its value may still be left over."""
    return isinstance(value, str) and has_plain_placeholders(name) and fits_in_header("name", name)
