"""The messages for subscribers, made from the log: the events of each family, numbered (SUB-113).

The log is read in whole interactions. An event larger than 64 KiB is sent without its data (SUB-707).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from cloudevents.core.v1.event import CloudEvent

from annals.commands.store.hashes import Interaction, LogRow
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.subscriptions import filters
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_index import SubscriptionInterest
from annals.projections.events.event_families import EventFamily, XRegistryFamily, published_events
from annals.projections.events.feed import OpenLog, interactions
from annals.projections.events.xregistry_events import ChangeEvent
from annals.projections.subscriptions.sequence import position_of, sequence_of, sequence_text

#: Largest size of an event on the wire, in bytes.
MAX_EVENT_BYTES: Final = 64 << 10
#: Total characters of changed names below which no encoding of an event comes near that size.
_SMALL_BYTES: Final = 4_000
#: Log positions that one read covers.
CHUNK_POSITIONS: Final = 200


@dataclass(slots=True)
class EventMessage:
    """One message for subscribers.

    attributes: its context attributes, all as text, including `sequence`.
    committed_at: the time of its interaction.
    """

    sequence: int
    family: str
    message: ChangeEvent
    attributes: Mapping[str, Any]
    committed_at: str
    _event: CloudEvent | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Upper estimate of its bytes in a batch."""
        changed = self.message.changed or ()
        return 512 + 2 * sum(map(len, self.attributes.values())) + 2 * sum(map(len, changed)) + 4 * len(changed)

    def cloudevent(self) -> CloudEvent:
        """The CloudEvent as it is sent: the same for every attempt (SUB-114), built once for all subscriptions."""
        self._event = self._event or self.message.cloudevent(sequence=self.attributes["sequence"])
        return self._event


class EventMessageReader:
    """Reads the log as messages. open_log: opens the log for the calling thread."""

    def __init__(self, open_log: OpenLog, families: Sequence[EventFamily]) -> None:
        self._open_log = open_log
        self._families = families

    def read_chunk(self, after: int, head: int) -> tuple[int, list[EventMessage]]:
        """The end of the next chunk after a position, and the messages in it. head: where to stop at the latest."""
        end = min(head, after + CHUNK_POSITIONS)
        return end, list(self._messages_between(after, end))

    def read_again(self, sequences: Collection[int]) -> dict[int, EventMessage]:
        """Messages by sequence, read from the log once more. Adjacent positions are read together."""
        events: dict[int, EventMessage] = {}
        positions = sorted(set(map(position_of, sequences)))
        for _, group in groupby(enumerate(positions), lambda each: each[1] - each[0]):
            adjacent = [position for _, position in group]
            events |= {event.sequence: event for event in self._messages_between(adjacent[0] - 1, adjacent[-1])}
        return {each: events[each] for each in sequences if each in events}

    def _messages_between(self, after: int, end: int) -> Iterator[EventMessage]:
        """The messages after one position, up to and including another."""
        for interaction, rows in interactions(self._open_log, after, end):
            yield from self._messages_of(interaction, rows)

    def _messages_of(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[EventMessage]:
        """The messages that all families make from each event, in the order of the families."""
        messages = published_events(self._families, interaction, rows)
        for position, message_group in groupby(messages, key=lambda each: each[1].position):
            for index, (family, message) in enumerate(message_group):
                sequence = sequence_of(position, index)
                yield EventMessage(sequence, family.name, *_with_sequence(message, sequence), interaction.time)


def _with_sequence(message: ChangeEvent, sequence: int) -> tuple[ChangeEvent, dict[str, Any]]:
    attributes = message.attributes() | {"sequence": sequence_text(sequence)}
    if message.changed is not None and _is_large(attributes, message.changed):
        return _with_sequence(message._replace(changed=None), sequence)
    return message, attributes


def _is_large(attributes: Mapping[str, Any], changed: Sequence[str]) -> bool:
    """Whether an event is too large in the longest form that libraries write: escaped and with spaces."""
    if sum(map(len, changed)) + 8 * len(changed) <= _SMALL_BYTES:
        return False
    return len(json.dumps({**attributes, "data": {"changed": changed}})) > MAX_EVENT_BYTES


class SubscriptionFilter:
    """The filter of one subscription.

    families: names of the families whose events it gets.
    since: start time as text; earlier events are filtered out.
    """

    def __init__(self, subscription: Subscription, families: Sequence[EventFamily]) -> None:
        attributes = self._attributes = subscription.attributes
        config = attributes.get("config") or {}
        self._families = _candidate_families(attributes, config, families)
        self._since = _round_up(config["starttime"]) if config.get("starttime") else ""

    @cached_property
    def interest(self) -> SubscriptionInterest:
        """The compiled filters.

        Compiled on first use, because many callers read a subscription without matching events.
        """
        attributes = self._attributes
        # No event's source ends in a slash, so a slash at the end of a subscription's source is ignored (SUB-103).
        source = attributes.get("source")
        return SubscriptionInterest(
            filters.compile_filters(attributes.get("filters")),
            source.rstrip("/") if source else None,
            frozenset(attributes.get("types") or ()),
        )

    def is_candidate(self, event: EventMessage, *, live: bool = True) -> bool:
        """Whether a message is a candidate for the filters. live: False for a replay of older events."""
        # Compares the time of recording: an event's own time may come from a client and be long ago.
        return event.family in self._families and (not live or event.committed_at >= self._since)

    def matches(self, event: EventMessage, *, live: bool = True) -> bool:
        """Whether the subscription wants a message."""
        return self.is_candidate(event, live=live) and self.interest.matches(event.attributes)


def _candidate_families(
    attributes: Mapping[str, Any], config: Mapping[str, Any], families: Sequence[EventFamily]
) -> frozenset[str]:
    """Names of the families whose events are candidates (SUB-111)."""
    if families_setting := config.get("families"):
        return frozenset(families_setting.split(",") if isinstance(families_setting, str) else families_setting)
    if attributes.get("source"):  # compared exactly, so only events of one family can match
        return frozenset(family.name for family in families)
    types: Sequence[str] = attributes.get("types") or ()
    prefixed_families = frozenset(
        family.name for family in families if any(event_type.startswith(family.prefix) for event_type in types)
    )
    return prefixed_families or frozenset((XRegistryFamily.name,))


def _round_up(time: str) -> str:
    """A time in the form that interactions have. A finer time is rounded up, because no earlier event is wanted."""
    seconds, _, fraction = to_utc(time).removesuffix("Z").partition(".")
    return f"{seconds}.{fraction[:6]:0<6}Z" if not fraction[6:].strip("0") else f"{seconds}.{fraction[:6]}~"
