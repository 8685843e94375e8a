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

from annals.domain.messaging.message_parts import MessagePart, MessageParts, PartValues, fold_name
from annals.domain.messaging.templates import Bindings, match_templates, placeholder_names
from annals.domain.model.validation import rfc3339
from annals.domain.model.validation.values import string_form
from annals.domain.registry.entities import Attributes
from annals.domain.values import timestamps as instants

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
    lists of them. folded_sections: sections with case-insensitive names.
    Options that change from hop to hop (quality of service, time to live, priority) are declared too, but do not count.
    """

    plain: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    folded_sections: frozenset[str] = frozenset()


_HEADERS: Final = frozenset({"headers"})
_MQTT: Final = ("topic_name", "response_topic", "correlation_data", "content_type", "payload_format_indicator")
_LAYOUTS: Final[dict[str, _ProtocolLayout]] = {
    "http": _ProtocolLayout(plain=("method", "path"), lists=("headers", "query"), folded_sections=_HEADERS),
    "amqp/1.0": _ProtocolLayout(
        maps=("properties", "application-properties", "message-annotations", "delivery-annotations", "footer")
    ),
    "mqtt/3.1.1": _ProtocolLayout(plain=("topic_name",)),
    "mqtt/5.0": _ProtocolLayout(plain=_MQTT, lists=("user_properties",)),
    "kafka": _ProtocolLayout(plain=("topic", "partition", "key", "key_base64"), maps=("headers",)),
    "nats": _ProtocolLayout(plain=("subject", "reply"), lists=("headers",), folded_sections=_HEADERS),
}


def match_message(definition: Attributes, message: MessageParts) -> MessageMatch | None:
    """The match of a message with a definition; None if it does not match, or if the two have no common part.

    definition: resolved, so that the properties of its bases count.
    """
    part_properties: list[tuple[MessagePart, list[_DeclaredProperty], _ProtocolLayout]] = []
    parts: list[str] = []
    for part, actual, properties in (
        ("envelope", message.envelope, _envelope_properties),
        ("protocol", message.protocol, _protocol_properties),
    ):
        declared_name = definition.get(part)
        if actual is None or not isinstance(declared_name, str):
            continue
        if fold_name(declared_name) != actual.name:
            return None
        part_properties.append((actual, list(properties(definition)), _LAYOUTS.get(actual.name, _ProtocolLayout())))
        parts.append(part)
    bindings = _match_parts(part_properties) if parts else None
    return None if bindings is None else MessageMatch(bindings, tuple(parts))


def _envelope_properties(definition: Attributes) -> Iterator[_DeclaredProperty]:
    metadata = definition.get("envelopemetadata")
    for name, declared in metadata.items() if isinstance(metadata, dict) else ():
        yield _declared_property("", name, declared)


def _protocol_properties(definition: Attributes) -> Iterator[_DeclaredProperty]:
    options = definition.get("protocoloptions")
    layout = _LAYOUTS.get(fold_name(definition["protocol"]))
    if layout is None or not isinstance(options, dict):
        return
    for name in layout.plain:
        if options.get(name) is not None:
            yield _DeclaredProperty("", name, "uritemplate", string_form(options[name]), True)
    for section in layout.maps:
        for key, declared in (options.get(section) or {}).items():
            yield _declared_property(section, declared.get("name", key), declared)
    for section in layout.lists:
        for declared in options.get(section) or ():
            # An entry of a list is present in the message; MQTT properties have no other way to be required.
            yield _declared_property(section, declared["name"], declared)


def _declared_property(section: str, name: str, declared: Mapping[str, Any]) -> _DeclaredProperty:
    value = declared.get("value")
    type = declared.get("type", "string")
    is_required = bool(declared.get("required")) or value is not None
    accepts_any = value is None or (type == "timestamp" and value == _ANY_TIME)
    return _DeclaredProperty(section, name, type, None if accepts_any else string_form(value), is_required)


def _match_parts(
    part_properties: list[tuple[MessagePart, list[_DeclaredProperty], _ProtocolLayout]],
) -> Bindings | None:
    """The values of placeholders if the message has all declared properties; otherwise None."""
    pairs: list[tuple[str, str]] = []
    for actual, properties, layout in part_properties:
        for declared in properties:
            actual_values = _actual_values(actual, declared, layout)
            if not actual_values:
                if declared.required:
                    return None
                continue
            if declared.value is None:
                continue
            matching_values = [value for value in actual_values if _is_match(declared, value)]
            if not matching_values:
                return None
            if placeholder_names(declared.value):
                pairs.append((declared.value, matching_values[0]))
    return match_templates(pairs)


def _actual_values(actual: MessagePart, declared: _DeclaredProperty, layout: _ProtocolLayout) -> list[str]:
    section: PartValues = actual.sections.get(declared.section, {})
    if declared.section not in layout.folded_sections:
        return section.get(declared.name, [])
    return [value for name, values in section.items() if name.lower() == declared.name.lower() for value in values]


def _is_match(declared: _DeclaredProperty, value: str) -> bool:
    """Whether one value alone fits; a value with placeholders is a template, whatever its type."""
    assert declared.value is not None, "there is nothing to compare with"
    if placeholder_names(declared.value):
        return match_templates([(declared.value, value)]) is not None
    if declared.name.lower() in _MEDIA_TYPES:
        return _comparable_media_type(declared.value) == _comparable_media_type(value)
    return declared.value == value or _is_same_value(declared.type, declared.value, value)


def _comparable_media_type(text: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """A media type in comparable form: its name and the names of its parameters without case (RFC 2045, 5.1)."""
    name, *parameters = text.split(";")
    pairs = (parameter.partition("=")[::2] for parameter in parameters)
    return name.strip().lower(), frozenset((key.strip().lower(), value.strip().strip('"')) for key, value in pairs)


def _is_same_value(type: str, first: str, other: str) -> bool:
    """Whether two texts are the same value of a type."""
    try:
        if type in _NUMBERS:
            return Decimal(first) == Decimal(other)
        if type == "timestamp":
            return instants.instant_key(rfc3339.to_utc(first)) == instants.instant_key(rfc3339.to_utc(other))
    except (InvalidOperation, ValueError, OverflowError):
        return False
    return False
