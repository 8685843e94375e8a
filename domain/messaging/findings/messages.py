"""Messages: the options of their protocols, their base messages, and changes of their type.

Spec: message 1.0-rc4, "basemessage", "Message protocols". Rules MS-09, MS-13, MS-14, MS-42 to 44.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.topics import is_topic
from annals.domain.messaging.findings.unchecked_values import (
    as_integer,
    as_mapping,
    as_text,
)
from annals.domain.values import xid as xids

_BASE: Final = "basemessageuri"
_SYMBOL: Final = re.compile(r"[A-Za-z0-9_]+\Z")
_AMQP_MAPS: Final = ("application-properties", "message-annotations", "delivery-annotations", "footer")


def mqtt_options_are_in_range(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-42: there are three qualities of service and two payload formats, and a topic has no wildcards."""
    if subject.protocol not in names.MQTT:
        return
    options = subject.options
    for name, maximum in (("qos", 2), ("payload_format_indicator", 1)):
        value = as_integer(options.get(name))
        if value is not None and not 0 <= value <= maximum:
            yield subject.must("MS-42", f"it is not from 0 to {maximum}", "protocoloptions", name)
    topic = as_text(options.get("topic_name"))
    if topic is not None and not is_topic(topic):
        yield subject.must("MS-42", "it has wildcards, so it does not name one topic", "protocoloptions", "topic_name")


def amqp_names_are_symbols(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-44: advice only, because the model's own examples have dashes."""
    if subject.protocol != names.AMQP:
        return
    options = subject.options
    for section in _AMQP_MAPS:
        for name in as_mapping(options.get(section)):
            if not _SYMBOL.match(name):
                text = "a symbol has letters, digits and _ only"
                yield subject.should("MS-44", text, "protocoloptions", section, name)


def base_chain_ends(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-13, MS-14: no message is its own base, directly or indirectly; a missing base has no effect.

    A reference to a message means its default Version. Cost: one lookup for each message of a chain, for all messages
    of the chain together.
    """
    reference = subject.text(_BASE)
    if reference is None or not reference.startswith("/"):
        return
    if subject.find(reference) is None:
        yield subject.should("MS-13", "the message does not exist", _BASE)
        return
    message_xid = _version_of(subject.xid, subject.attributes)
    if message_xid not in subject.chains.followed_xids:
        _follow_chain(subject, message_xid)
    if message_xid in subject.chains.circular_xids:
        yield subject.must("MS-14", "the message is its own base, directly or through other messages", _BASE)


def _follow_chain(subject: ValidatedEntity, message_xid: str) -> None:
    """Follows a chain to its end, to a message that was already followed, or to a cycle."""
    chains, visited = subject.chains, {message_xid: None}
    attributes: Mapping[str, Any] = subject.attributes
    while True:
        reference = as_text(attributes.get(_BASE))
        base_attributes = subject.find(reference) if reference is not None else None
        if reference is None or base_attributes is None:
            break
        name, attributes = _version_of(reference, base_attributes), base_attributes
        if name in visited:
            visited_names = list(visited)
            chains.circular_xids.update(visited_names[visited_names.index(name) :])
            break
        if name in chains.followed_xids:
            break
        visited[name] = None
    chains.followed_xids.update(visited)


def type_is_unchanged(previous: Mapping[str, Any], subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-09: a message with another type is another message for its consumers."""
    old_type, new_type = (as_text(_type_of(attributes)) for attributes in (previous, subject.attributes))
    if old_type is not None and new_type is not None and old_type != new_type:
        text = "clients may rely on the old type; create a new message and name it in deprecated.alternative"
        yield subject.should("MS-09", text, "envelopemetadata", "type", "value")


def _type_of(attributes: Mapping[str, Any]) -> Any:
    return as_mapping(as_mapping(attributes.get("envelopemetadata")).get("type")).get("value")


def _version_of(xid: str, attributes: Mapping[str, Any]) -> str:
    """The Version that a reference means, under the name of the Resource that has it."""
    xref = as_text(as_mapping(attributes.get("meta")).get("xref"))
    version = xids.entity_id(xid) if len(xids.segments(xid)) == 6 else attributes.get("versionid")
    return f"{xref or xids.resource_of(xid)}/versions/{version}"
