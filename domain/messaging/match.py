"""Finds the message definitions that an actual message matches.

A message matches a definition if every property declared with a value has that value or fits its template, and if every
required property is present (MS-50). Envelope and protocol are compared separately. A message of which only one is
available is compared with that part of the definition, and the definition defines the kind of the other part (MS-52).
Spec: message 1.0-rc4, "Message Definitions", "Property Definitions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from domain.messaging.message_parts import MessagePart, MessageParts, PartValues, fold_name
from domain.messaging.templates import Bindings, match_templates, placeholder_names
from domain.model import rfc3339
from domain.model.values import string_form
from domain.registry.entities import Attributes
from domain.values import timestamps as instants

#: "The current time", which matches every time (CloudEvents attribute `time`).
_ANY_TIME: Final = "0000-01-01T00:00:00Z"
_NUMBERS: Final = frozenset({"integer", "number", "ulong"})
#: Properties that hold a media type, in any protocol.
_MEDIA_TYPES: Final = frozenset({"datacontenttype", "content-type", "content_type"})


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """bindings: the value of each placeholder. parts: `envelope` and `protocol`, those that both sides have."""

    bindings: Bindings
    parts: tuple[str, ...]


class _DeclaredProperty(NamedTuple):
    """One property that a definition declares. value: None: any."""

    section: str
    name: str
    type: str
    value: str | None
    required: bool


class _ProtocolLayout(NamedTuple):
    """The places of a protocol's properties in its definition.

    plain: options that are values themselves. maps: options that are maps of property objects; lists: those that are
    lists of them. folded: sections with case-insensitive names.
    Options that change from hop to hop (quality of service, time to live, priority) are declared too, but do not count.
    """

    plain: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    folded: frozenset[str] = frozenset()


_HEADERS: Final = frozenset({"headers"})
_MQTT: Final = ("topic_name", "response_topic", "correlation_data", "content_type", "payload_format_indicator")
_SHAPES: Final[dict[str, _ProtocolLayout]] = {
    "http": _ProtocolLayout(plain=("method", "path"), lists=("headers", "query"), folded=_HEADERS),
    "amqp/1.0": _ProtocolLayout(
        maps=("properties", "application-properties", "message-annotations", "delivery-annotations", "footer")
    ),
    "mqtt/3.1.1": _ProtocolLayout(plain=("topic_name",)),
    "mqtt/5.0": _ProtocolLayout(plain=_MQTT, lists=("user_properties",)),
    "kafka": _ProtocolLayout(plain=("topic", "partition", "key", "key_base64"), maps=("headers",)),
    "nats": _ProtocolLayout(plain=("subject", "reply"), lists=("headers",), folded=_HEADERS),
}


def match_message(definition: Attributes, message: MessageParts) -> MessageMatch | None:
    """The match of a message with a definition; None if it does not match, or if the two have no common part.

    definition: resolved, so that the properties of its bases count.
    """
    asked: list[tuple[MessagePart, list[_DeclaredProperty], _ProtocolLayout]] = []
    parts: list[str] = []
    for part, actual, properties in (
        ("envelope", message.envelope, _of_envelope),
        ("protocol", message.protocol, _of_protocol),
    ):
        stated = definition.get(part)
        if actual is None or not isinstance(stated, str):
            continue
        if fold_name(stated) != actual.name:
            return None
        asked.append((actual, list(properties(definition)), _SHAPES.get(actual.name, _ProtocolLayout())))
        parts.append(part)
    bindings = _bound(asked) if parts else None
    return None if bindings is None else MessageMatch(bindings, tuple(parts))


def _of_envelope(definition: Attributes) -> Iterator[_DeclaredProperty]:
    metadata = definition.get("envelopemetadata")
    for name, declared in metadata.items() if isinstance(metadata, dict) else ():
        yield _property("", name, declared)


def _of_protocol(definition: Attributes) -> Iterator[_DeclaredProperty]:
    options = definition.get("protocoloptions")
    shape = _SHAPES.get(fold_name(definition["protocol"]))
    if shape is None or not isinstance(options, dict):
        return
    for name in shape.plain:
        if options.get(name) is not None:
            yield _DeclaredProperty("", name, "uritemplate", string_form(options[name]), True)
    for section in shape.maps:
        for key, declared in (options.get(section) or {}).items():
            yield _property(section, declared.get("name", key), declared)
    for section in shape.lists:
        for declared in options.get(section) or ():
            # An entry of a list is present in the message; MQTT properties have no other way to be required.
            yield _property(section, declared["name"], declared)


def _property(section: str, name: str, declared: Mapping[str, Any]) -> _DeclaredProperty:
    value = declared.get("value")
    type = declared.get("type", "string")
    needed = bool(declared.get("required")) or value is not None
    open = value is None or (type == "timestamp" and value == _ANY_TIME)
    return _DeclaredProperty(section, name, type, None if open else string_form(value), needed)


def _bound(asked: list[tuple[MessagePart, list[_DeclaredProperty], _ProtocolLayout]]) -> Bindings | None:
    """The values of placeholders if the message has all declared properties; otherwise None."""
    pairs: list[tuple[str, str]] = []
    for actual, properties, shape in asked:
        for wanted in properties:
            found = _values(actual, wanted, shape)
            if not found:
                if wanted.required:
                    return None
                continue
            if wanted.value is None:
                continue
            fitting = [value for value in found if _fits(wanted, value)]
            if not fitting:
                return None
            if placeholder_names(wanted.value):
                pairs.append((wanted.value, fitting[0]))
    return match_templates(pairs)


def _values(actual: MessagePart, wanted: _DeclaredProperty, shape: _ProtocolLayout) -> list[str]:
    section: PartValues = actual.sections.get(wanted.section, {})
    if wanted.section not in shape.folded:
        return section.get(wanted.name, [])
    return [value for name, values in section.items() if name.lower() == wanted.name.lower() for value in values]


def _fits(wanted: _DeclaredProperty, value: str) -> bool:
    """Whether one value alone fits; a value with placeholders is a template, whatever its type."""
    assert wanted.value is not None, "there is nothing to compare with"
    if placeholder_names(wanted.value):
        return match_templates([(wanted.value, value)]) is not None
    if wanted.name.lower() in _MEDIA_TYPES:
        return _media_type(wanted.value) == _media_type(value)
    return wanted.value == value or _alike(wanted.type, wanted.value, value)


def _media_type(text: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """A media type in comparable form: its name and the names of its parameters without case (RFC 2045, 5.1)."""
    name, *parameters = text.split(";")
    pairs = (each.partition("=")[::2] for each in parameters)
    return name.strip().lower(), frozenset((key.strip().lower(), value.strip().strip('"')) for key, value in pairs)


def _alike(type: str, one: str, other: str) -> bool:
    """Whether two texts are the same value of a type."""
    try:
        if type in _NUMBERS:
            return Decimal(one) == Decimal(other)
        if type == "timestamp":
            return instants.instant_key(rfc3339.to_utc(one)) == instants.instant_key(rfc3339.to_utc(other))
    except (InvalidOperation, ValueError, OverflowError):
        return False
    return False
