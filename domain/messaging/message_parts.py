"""The parts of a message that a definition can say something about, taken out of what a client has at hand.

A part has its values by section and name, as text. Sections are those of a definition: `envelopemetadata` of an
envelope, and of a protocol its sections that hold named values (`headers`, `application-properties`), with the empty
name for the options themselves. A name may have several values, as headers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from domain.messaging.findings import names
from domain.model.values import string_form
from domain.values.json_text import Json

#: Values by name.
PartValues = dict[str, list[str]]

#: Members of a structured CloudEvent that are no context attributes.
_PAYLOAD: Final = frozenset({"data", "data_base64"})
#: What of a message goes by which names, in the words of its definition.
ENVELOPE: Final = ("envelope", "envelopemetadata")
PROTOCOL: Final = ("protocol", "protocoloptions")


@dataclass(frozen=True, slots=True)
class MessagePart:
    """An envelope or a protocol, and what a message says there. name: folded, of protocols the canonical one."""

    name: str
    sections: Mapping[str, PartValues] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageParts:
    """A message that definitions are held against; it has at least one part."""

    envelope: MessagePart | None = None
    protocol: MessagePart | None = None


def fold_name(name: str) -> str:
    """What two names of an envelope or a protocol have in common that mean the same (EP-10)."""
    return (names.canonical_protocol(name) or name).lower()


def parse_message(value: Json) -> MessageParts:
    """A structured CloudEvent, or the parts of any message in the words of a definition.

    Raises: ValueError, whose message says what is wrong.
    """
    if not isinstance(value, dict):
        raise ValueError("a message is a JSON object")
    return _cloud_event(value) if "specversion" in value else _parts(value)


def _cloud_event(event: Mapping[str, Json]) -> MessageParts:
    version = event["specversion"]
    if not isinstance(version, str):
        raise ValueError('"specversion" has to be a string')
    given = {name: value for name, value in event.items() if name not in _PAYLOAD}
    return MessageParts(envelope=MessagePart(f"cloudevents/{version}".lower(), {"": _values(given, "the event")}))


def _parts(given: Mapping[str, Json]) -> MessageParts:
    for name in given:
        if name not in (*ENVELOPE, *PROTOCOL):
            raise ValueError(f'"{name}" is none of: {", ".join((*ENVELOPE, *PROTOCOL))}; nor is this a CloudEvent')
    envelope, protocol = _name(given, "envelope"), _name(given, "protocol")
    if envelope is None and protocol is None:
        raise ValueError('a message has an "envelope", a "protocol" or both, or is a structured CloudEvent')
    metadata = {"": _values(_object(given, "envelopemetadata"), "envelopemetadata")}
    options = _sections(_object(given, "protocoloptions"))
    return MessageParts(
        MessagePart(fold_name(envelope), metadata) if envelope is not None else None,
        MessagePart(fold_name(protocol), options) if protocol is not None else None,
    )


def _name(given: Mapping[str, Json], member: str) -> str | None:
    value = given.get(member)
    if value is not None and not isinstance(value, str):
        raise ValueError(f'"{member}" has to be a string')
    return value


def _object(given: Mapping[str, Json], member: str) -> Mapping[str, Json]:
    value = given.get(member)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f'"{member}" has to be an object')
    return value or {}


def _sections(options: Mapping[str, Json]) -> dict[str, PartValues]:
    """Options of a protocol: those that are scalars together, each map or list of named values by itself."""
    plain: dict[str, Json] = {}
    found: dict[str, PartValues] = {}
    for name, value in options.items():
        if isinstance(value, dict):
            found[name] = _values(value, name)
        elif isinstance(value, list):
            found[name] = _listed(value, name)
        else:
            plain[name] = value
    return {**found, "": _values(plain, "protocoloptions")}


def _values(given: Mapping[str, Json], where: str) -> PartValues:
    return {name: [_text(value, f"{name} in {where}")] for name, value in given.items() if value is not None}


def _listed(items: list[Json], where: str) -> PartValues:
    """A list such as that of a message's headers, which may have a name more than once."""
    found: PartValues = {}
    for name, value in _named(items, where):
        found.setdefault(name, []).append(_text(value, f"{name} in {where}"))
    return found


def _named(items: list[Json], where: str) -> Iterator[tuple[str, Any]]:
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ValueError(f"each item of {where} has to be an object with a name and a value")
        yield item["name"], item.get("value", "")


def _text(value: Json, where: str) -> str:
    if not isinstance(value, str | bool | int | float | Decimal):
        raise ValueError(f"{where} has to be a string, a number or a boolean")
    return string_form(value)
