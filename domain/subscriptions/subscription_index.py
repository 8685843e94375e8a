"""Finds the subscriptions that match an event, without an evaluation of all filters.

Most filters have a condition that a table can look up: a `type`, or the start of a `subject`. Only subscriptions whose
conditions the event meets, and those without known conditions, are candidates and evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from annals.domain.cesql import ContextAttributes
from annals.domain.cesql.values import canonical_string
from annals.domain.subscriptions import index_conditions
from annals.domain.subscriptions.filters import Filter
from annals.domain.subscriptions.index_conditions import IndexCondition, IndexConditions

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SubscriptionInterest:
    """The events that a subscription selects: of a source, of one of several types, and matched by its filters.

    source, types: None and empty select any (SUB-103).
    """

    filter: Filter
    source: str | None = None
    types: Collection[str] = ()

    def matches(self, event: ContextAttributes) -> bool:
        """Whether an event is selected; the cheap checks come first (SUB-105)."""
        if self.source is not None and event.get("source") != self.source:
            return False
        if self.types and event.get("type") not in self.types:
            return False
        return self.filter.matches(event)

    @property
    def conditions(self) -> IndexConditions:
        """Conditions that hold for every selected event."""
        source_conditions = (
            index_conditions.attribute_equals("source", self.source) if self.source is not None else None
        )
        type_conditions = (
            index_conditions.any_condition(
                index_conditions.attribute_equals("type", event_type) for event_type in self.types
            )
            if self.types
            else None
        )
        return index_conditions.all_conditions((self.filter.conditions, type_conditions, source_conditions))


class SubscriptionIndex(Generic[K]):
    """The interests of subscriptions by their keys; interests can be added and removed."""

    def __init__(self) -> None:
        self._interests: dict[K, SubscriptionInterest] = {}
        self._unconditional_keys: dict[K, None] = {}
        #: Keys by attribute, by the length of the compared text (0 for the whole text), and by that text.
        self._tables: dict[str, dict[int, dict[str, dict[K, None]]]] = {}

    def put(self, key: K, interest: SubscriptionInterest) -> None:
        """Adds an interest, or replaces the previous one of the key."""
        self.remove(key)
        self._interests[key] = interest
        conditions = interest.conditions
        if conditions is None:
            self._unconditional_keys[key] = None
            return
        for attribute, text, is_exact in conditions:
            lengths = self._tables.setdefault(attribute, {})
            lengths.setdefault(0 if is_exact else len(text), {}).setdefault(text, {})[key] = None

    def remove(self, key: K) -> None:
        """Removes an interest, if there is one."""
        interest = self._interests.pop(key, None)
        if interest is None:
            return
        self._unconditional_keys.pop(key, None)
        for condition in interest.conditions or ():
            self._remove_condition(key, condition)

    def candidates(self, event: ContextAttributes) -> list[K]:
        """The keys of all interests that may match, each once. O(attributes × lengths + candidates)."""
        matching_keys = dict(self._unconditional_keys)
        for keys in self._matching_tables(event):
            matching_keys.update(keys)
        return list(matching_keys)

    def matches(self, event: ContextAttributes) -> list[K]:
        """The keys of all interests that match."""
        return [key for key in self.candidates(event) if self._interests[key].matches(event)]

    def _matching_tables(self, event: ContextAttributes) -> Iterator[dict[K, None]]:
        for attribute, lengths in self._tables.items():
            value = event.get(attribute)
            if value is None:
                continue
            text = value if type(value) is str else canonical_string(value)
            for length, keys in lengths.items():
                if length <= len(text) and (matching_keys := keys.get(text[:length] if length else text)):
                    yield matching_keys

    def _remove_condition(self, key: K, condition: IndexCondition) -> None:
        """Removes empty tables too, so that old interests cost nothing later."""
        lengths = self._tables[condition.attribute]
        length = 0 if condition.is_exact else len(condition.text)
        keys_by_text = lengths[length]
        del keys_by_text[condition.text][key]
        if not keys_by_text[condition.text]:
            del keys_by_text[condition.text]
        if not keys_by_text:
            del lengths[length]
        if not lengths:
            del self._tables[condition.attribute]
