"""The destinations and subscriptions of MQTT and NATS endpoints: concrete names, filters, and groups that share them.

Spec: endpoint 1.0-rc4, "MQTT options", "NATS options". Rules EP-29 to 31, EP-33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.placeholders import blank_placeholders
from annals.domain.messaging.findings.unchecked_values import as_text


class _Addressing(NamedTuple):
    """The options of one protocol for a destination, a filter of destinations, and a group that shares a filter."""

    place: str
    filter: str
    group: str
    is_concrete: Callable[[str], bool]
    is_well_formed: Callable[[str], bool]


def is_topic(name: str) -> bool:
    """Whether a name is that of one MQTT topic."""
    return not any(character in blank_placeholders(name) for character in "+#\0")


def _is_topicfilter(filter: str) -> bool:
    *parent_levels, last_level = blank_placeholders(filter).split("/")
    levels = [*parent_levels, "" if last_level == "#" else last_level]
    return bool(filter) and all("#" not in level and ("+" not in level or level == "+") for level in levels)


def _is_subject(name: str) -> bool:
    return not {"*", ">"} & set(blank_placeholders(name).split("."))


def _is_subjectfilter(filter: str) -> bool:
    return ">" not in blank_placeholders(filter).split(".")[:-1]


_TOPICS: Final = _Addressing("topic", "topicfilter", "sharedsubscriptiongroup", is_topic, _is_topicfilter)
_SUBJECTS: Final = _Addressing("subject", "subjectfilter", "queuegroup", _is_subject, _is_subjectfilter)
_ADDRESSING: Final = {names.MQTT3: _TOPICS, names.MQTT5: _TOPICS, names.NATS: _SUBJECTS}


def destinations_are_concrete(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-29, EP-31: one destination or one filter, each well-formed."""
    addressing = _ADDRESSING.get(subject.protocol or "")
    if addressing is None:
        return
    options = subject.options
    destination, topic_filter = as_text(options.get(addressing.place)), as_text(options.get(addressing.filter))
    if destination is not None and not addressing.is_concrete(destination):
        yield subject.must(
            "EP-29",
            f"it has wildcards, so it does not name one {addressing.place}",
            "protocoloptions",
            addressing.place,
        )
    if addressing.place in options and addressing.filter in options:
        yield subject.must(
            "EP-29", f"it cannot be combined with {addressing.place}", "protocoloptions", addressing.filter
        )
    if topic_filter is not None and not addressing.is_well_formed(topic_filter):
        yield subject.should(
            "EP-31", "a wildcard is at a position where it does not work as one", "protocoloptions", addressing.filter
        )


def groups_share_filters(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-30: a group shares a filter, and its name has no prefix."""
    addressing = _ADDRESSING.get(subject.protocol or "")
    options = subject.options
    if addressing is None or addressing.group not in options:
        return
    if addressing.filter not in options:
        yield subject.must("EP-30", f"it needs a {addressing.filter} to share", "protocoloptions", addressing.group)
    if addressing is _TOPICS and "/" in blank_placeholders(str(options[addressing.group])):
        yield subject.must("EP-30", "the name of a group cannot have a /", "protocoloptions", addressing.group)


def last_will_is_sendable(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-33: the message of a last will is a CloudEvent or an MQTT message, if this registry has it."""
    if subject.protocol not in names.MQTT:
        return
    reference = as_text(subject.options.get("willmessage"))
    message = subject.find(reference) if reference else None
    if message is not None and not (
        names.is_cloudevents(as_text(message.get("envelope")))
        or names.canonical_protocol(as_text(message.get("protocol"))) in names.MQTT
    ):
        yield subject.must(
            "EP-33", "the message is neither a CloudEvent nor an MQTT message", "protocoloptions", "willmessage"
        )
