"""The subscriptions whose filters match events of an entity.

No event says which subscriptions get it, so each subscription is asked: would it get an event of the entity's creation,
of an update, or of its deletion? They are made from the event of its creation, with the time of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.events.event_families import EventFamily, published_events
from annals.projections.references.reference import Reference, ReferenceState
from annals.projections.subscriptions.event_messages import EventMessage, SubscriptionFilter
from annals.projections.subscriptions.sequence import sequence_of, sequence_text

#: The number of subscriptions whose compiled filters stay in memory.
CACHE_SIZE: Final = 10_000
#: The words in types of events, in every family, that say what happened.
_ACTIONS: Final = ("created", "updated", "deleted")


class SubscriptionMatcher:
    """Asks subscriptions, and keeps their compiled filters. families: of all events, in their order."""

    def __init__(self, families: Sequence[EventFamily]) -> None:
        self._families = families
        self._filters: dict[tuple[str, int], SubscriptionFilter] = {}

    def references(self, view: View, row: EntityRow, can_see: Callable[[Subscription], bool]) -> Iterator[Reference]:
        """The subscriptions that match events of an entity, by id. can_see: whether the reader sees a subscription.

        Cost: O(subscriptions).
        """
        messages = list(self._messages(view, row))
        matching = (
            entry.subscription.id
            for entry in view.subscriptions.all()
            if can_see(entry.subscription) and self._matches_any(entry.subscription, messages)
        )
        for id in sorted(matching):
            yield Reference(f"/subscriptions/{id}", row.xid, "filters", ReferenceState.RESOLVED)

    def _matches_any(self, subscription: Subscription, messages: Sequence[EventMessage]) -> bool:
        key = subscription.id, subscription.position
        compiled = self._filters.get(key)
        if compiled is None:
            if len(self._filters) >= CACHE_SIZE:
                self._filters.clear()
            compiled = self._filters[key] = SubscriptionFilter(subscription, self._families)
        return any(compiled.matches(message, live=False) for message in messages)

    def _messages(self, view: View, row: EntityRow) -> Iterator[EventMessage]:
        position = row.born or row.since
        for interaction in view.log.interactions(position - 1, 1):
            stored = view.log.events(position, position)
            for index, (family, message) in enumerate(published_events(self._families, interaction, stored)):
                for type in _similar_types(message.type):
                    sequence, event = sequence_of(position, index), message._replace(type=type)
                    attributes = event.attributes() | {"sequence": sequence_text(sequence)}
                    yield EventMessage(sequence, family.name, event, attributes, interaction.time)


def _similar_types(type: str) -> Iterator[str]:
    """The types of the events of an entity, from one of them."""
    names = type.split(".")
    action = next((index for index, name in enumerate(names) if name in _ACTIONS), None)
    if action is None:
        yield type
    else:
        yield from (".".join((*names[:action], name, *names[action + 1 :])) for name in _ACTIONS)
