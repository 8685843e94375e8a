"""The log as events for subscribers: read in whole, made into the events of each family, numbered (SUB-113).

A message that does not fit into 64 KiB goes without its data (SUB-707).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from cloudevents.core.v1.event import CloudEvent

from commands.store.hashes import Interaction, LogRow
from domain.model.rfc3339 import to_utc
from domain.subscriptions import filters
from domain.subscriptions.subscription import Subscription
from domain.subscriptions.subscription_index import SubscriptionInterest
from projections.events.event_families import EventFamily, XRegistryFamily, published_events
from projections.events.feed import OpenLog, interactions
from projections.events.xregistry_events import ChangeEvent
from projections.subscriptions.sequence import position_of, sequence_of, sequence_text

#: Bytes that an event may have on the wire.
MAX_EVENT_BYTES: Final = 64 << 10
#: Characters of names below which no event comes near that, whatever they are written as.
_SMALL: Final = 4_000
#: Events of the log of one look.
CHUNK_POSITIONS: Final = 200


@dataclass(slots=True)
class EventMessage:
    """One message.

    attributes: its context, all of them text, `sequence` included. recorded: the time of its interaction.
    """

    sequence: int
    family: str
    message: ChangeEvent
    attributes: Mapping[str, Any]
    recorded: str
    _event: CloudEvent | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Bytes that it takes in a batch, or somewhat more."""
        changed = self.message.changed or ()
        return 512 + 2 * sum(map(len, self.attributes.values())) + 2 * sum(map(len, changed)) + 4 * len(changed)

    def cloudevent(self) -> CloudEvent:
        """The event as it is sent, the same one every time (SUB-114), made once for all who want it."""
        self._event = self._event or self.message.cloudevent(sequence=self.attributes["sequence"])
        return self._event


class EventMessageReader:
    """The log as messages. logs: gives it to the calling thread."""

    def __init__(self, logs: OpenLog, families: Sequence[EventFamily]) -> None:
        self._logs = logs
        self._families = families

    def chunk(self, after: int, head: int) -> tuple[int, list[EventMessage]]:
        """What comes of the next events beyond a position, and where they end. head: of the log, or where to stop."""
        end = min(head, after + CHUNK_POSITIONS)
        return end, list(self._between(after, end))

    def again(self, sequences: Collection[int]) -> dict[int, EventMessage]:
        """Messages that were told before; positions side by side are read together."""
        found: dict[int, EventMessage] = {}
        positions = sorted(set(map(position_of, sequences)))
        for _, run in groupby(enumerate(positions), lambda each: each[1] - each[0]):
            together = [position for _, position in run]
            found |= {told.sequence: told for told in self._between(together[0] - 1, together[-1])}
        return {each: found[each] for each in sequences if each in found}

    def _between(self, after: int, end: int) -> Iterator[EventMessage]:
        """The messages beyond a position and up to another."""
        for interaction, rows in interactions(self._logs, after, end):
            yield from self._of(interaction, rows)

    def _of(self, interaction: Interaction, rows: Iterable[LogRow]) -> Iterator[EventMessage]:
        """The messages of all families made from each event, in the families' order."""
        made = published_events(self._families, interaction, rows)
        for position, several in groupby(made, key=lambda each: each[1].position):
            for index, (family, message) in enumerate(several):
                number = sequence_of(position, index)
                yield EventMessage(number, family.name, *_with_sequence(message, number), interaction.time)


def _with_sequence(message: ChangeEvent, number: int) -> tuple[ChangeEvent, dict[str, Any]]:
    attributes = message.attributes() | {"sequence": sequence_text(number)}
    if message.changed is not None and _is_large(attributes, message.changed):
        return _with_sequence(message._replace(changed=None), number)
    return message, attributes


def _is_large(attributes: Mapping[str, Any], changed: Sequence[str]) -> bool:
    """Whether an event is too large in the longest of the forms that libraries write: escaped and with spaces."""
    if sum(map(len, changed)) + 8 * len(changed) <= _SMALL:
        return False
    return len(json.dumps({**attributes, "data": {"changed": changed}})) > MAX_EVENT_BYTES


class SubscriptionFilter:
    """What one subscription wants of the log.

    families: whose events it gets. since: the text of the time before which it wants none.
    """

    def __init__(self, subscription: Subscription, families: Sequence[EventFamily]) -> None:
        attributes = self._attributes = subscription.attributes
        config = attributes.get("config") or {}
        self._families = _family_names(attributes, config, families)
        self._since = _rounded_up(config["starttime"]) if config.get("starttime") else ""

    @cached_property
    def interest(self) -> SubscriptionInterest:
        """What is asked of events; compiled when the first one is, as many look at a subscription for other reasons."""
        attributes = self._attributes
        # No event's source ends in a slash, so one that a subscription has there is for nothing (SUB-103).
        source = attributes.get("source")
        return SubscriptionInterest(
            filters.compile_filters(attributes.get("filters")),
            source.rstrip("/") if source else None,
            frozenset(attributes.get("types") or ()),
        )

    def at_all(self, told: EventMessage, *, live: bool = True) -> bool:
        """Whether a message is one of those that the filters are asked about. live: and no replay of older ones."""
        # Its own time may be one that a client gave, of long ago.
        return told.family in self._families and (not live or told.recorded >= self._since)

    def matches(self, told: EventMessage, *, live: bool = True) -> bool:
        """Whether a message is wanted."""
        return self.at_all(told, live=live) and self.interest.matches(told.attributes)


def _family_names(
    attributes: Mapping[str, Any], config: Mapping[str, Any], families: Sequence[EventFamily]
) -> frozenset[str]:
    """Names of the families whose events are considered (SUB-111)."""
    if given := config.get("families"):
        return frozenset(given.split(",") if isinstance(given, str) else given)
    if attributes.get("source"):  # is compared exactly, so the events of one family at most have it
        return frozenset(family.name for family in families)
    types: Sequence[str] = attributes.get("types") or ()
    named = frozenset(family.name for family in families if any(each.startswith(family.prefix) for each in types))
    return named or frozenset((XRegistryFamily.name,))


def _rounded_up(time: str) -> str:
    """A time in the form that interactions have; a finer one is rounded up, as nothing before it is wanted."""
    seconds, _, fraction = to_utc(time).removesuffix("Z").partition(".")
    return f"{seconds}.{fraction[:6]:0<6}Z" if not fraction[6:].strip("0") else f"{seconds}.{fraction[:6]}~"
