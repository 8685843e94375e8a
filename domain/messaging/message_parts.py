"""Extracts the parts of a message that a definition can describe, from the data of a client.

A part has its values by section and name, as text. Sections are those of a definition. An envelope has
`envelopemetadata`. A protocol has its sections of named values (`headers`, `application-properties`), and the empty
name for the options themselves. A name may have several values, as headers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from annals.domain.messaging.findings import names
from annals.domain.model.validation.values import string_form
from annals.domain.values.json_text import Json

#: Values by name.
PartValues = dict[str, list[str]]

#: Members of a structured CloudEvent that are not context attributes.
_DATA_MEMBERS: Final = frozenset({"data", "data_base64"})
#: The members of a definition that describe each part.
ENVELOPE: Final = ("envelope", "envelopemetadata")
PROTOCOL: Final = ("protocol", "protocoloptions")


@dataclass(frozen=True, slots=True)
class MessagePart:
    """The envelope or the protocol of a message with its values. name: folded; for protocols the canonical one."""

    name: str
    sections: Mapping[str, PartValues] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageParts:
    """A message to compare with definitions; it has at least one part."""

    envelope: MessagePart | None = None
    protocol: MessagePart | None = None


def fold_name(name: str) -> str:
    """An equal text for all equivalent names of an envelope or a protocol (EP-10)."""
    return (names.canonical_protocol(name) or name).lower()


def parse_message(value: Json) -> MessageParts:
    """The parts of a structured CloudEvent, or of any message described with the members of a definition.

    Raises: ValueError, whose message says what is wrong.
    """
    if not isinstance(value, dict):
        raise ValueError("a message has to be a JSON object")
    return _parse_cloudevent(value) if "specversion" in value else _parse_parts(value)


def _parse_cloudevent(event: Mapping[str, Json]) -> MessageParts:
    version = event["specversion"]
    if not isinstance(version, str):
        raise ValueError('"specversion" has to be a string')
    context_attributes = {name: value for name, value in event.items() if name not in _DATA_MEMBERS}
    return MessageParts(
        envelope=MessagePart(f"cloudevents/{version}".lower(), {"": _parse_values(context_attributes, "the event")})
    )


def _parse_parts(members: Mapping[str, Json]) -> MessageParts:
    for name in members:
        if name not in (*ENVELOPE, *PROTOCOL):
            raise ValueError(
                f'"{name}" is not one of: {", ".join((*ENVELOPE, *PROTOCOL))}, and this is not a CloudEvent'
            )
    envelope, protocol = _string_member(members, "envelope"), _string_member(members, "protocol")
    if envelope is None and protocol is None:
        raise ValueError('a message needs an "envelope", a "protocol" or both, unless it is a structured CloudEvent')
    metadata = {"": _parse_values(_object_member(members, "envelopemetadata"), "envelopemetadata")}
    options = _parse_sections(_object_member(members, "protocoloptions"))
    return MessageParts(
        MessagePart(fold_name(envelope), metadata) if envelope is not None else None,
        MessagePart(fold_name(protocol), options) if protocol is not None else None,
    )


def _string_member(members: Mapping[str, Json], member: str) -> str | None:
    value = members.get(member)
    if value is not None and not isinstance(value, str):
        raise ValueError(f'"{member}" has to be a string')
    return value


def _object_member(members: Mapping[str, Json], member: str) -> Mapping[str, Json]:
    value = members.get(member)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f'"{member}" has to be an object')
    return value or {}


def _parse_sections(options: Mapping[str, Json]) -> dict[str, PartValues]:
    """The options of a protocol: scalars together, each map or list of named values separately."""
    scalars: dict[str, Json] = {}
    sections: dict[str, PartValues] = {}
    for name, value in options.items():
        if isinstance(value, dict):
            sections[name] = _parse_values(value, name)
        elif isinstance(value, list):
            sections[name] = _parse_list(value, name)
        else:
            scalars[name] = value
    return {**sections, "": _parse_values(scalars, "protocoloptions")}


def _parse_values(members: Mapping[str, Json], place: str) -> PartValues:
    return {name: [_value_text(value, f"{name} in {place}")] for name, value in members.items() if value is not None}


def _parse_list(items: list[Json], place: str) -> PartValues:
    """A list such as that of a message's headers, which may have a name more than once."""
    values: PartValues = {}
    for name, value in _named_items(items, place):
        values.setdefault(name, []).append(_value_text(value, f"{name} in {place}"))
    return values


def _named_items(items: list[Json], place: str) -> Iterator[tuple[str, Any]]:
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ValueError(f"each item of {place} has to be an object with a name and a value")
        yield item["name"], item.get("value", "")


def _value_text(value: Json, place: str) -> str:
    if not isinstance(value, str | bool | int | float | Decimal):
        raise ValueError(f"{place} has to be a string, a number or a boolean")
    return string_form(value)
