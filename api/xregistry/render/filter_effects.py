"""What a filter changes in the entities of a response: the sizes and the URLs of their collections.

Spec: core 1.0-rc4, "Filter Flag".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final
from urllib.parse import quote

from annals.domain.filters import EXCLUDE_ALL, depth, remaining_filters
from annals.domain.values import xid as xids
from annals.projections.entities.filters.selection import FilterState, Selection
from annals.projections.entities.rows import EntityRow

_SAFE_CHARACTERS: Final = "=*!:/@"


class FilterEffects:
    """Counts and residual filters of one response. Callers have to pass rows in response order.

    state: the filter state at the top of the response; None for that of the request.
    """

    def __init__(self, selection: Selection, state: FilterState | None = None) -> None:
        self._selection = selection
        self._top_state = state or selection.state
        self._range = selection.low, selection.high
        self._states: dict[int, tuple[str, FilterState]] = {}
        self._counts: dict[str, dict[str, int]] = {}

    def set_key_range(self, first_key: str, end_key: str) -> None:
        """Limits the counts to the key range of the response's rows."""
        self._range = first_key, end_key

    def count_and_query(self, owner: EntityRow, plural: str, count: str) -> tuple[str, str]:
        """The number of surviving members of an entity's collection, and the query for its URL.

        count: the number of all members.
        """
        state = self._state(owner)
        type = plural if depth(owner.type) == 0 else f"{owner.type}.{plural}"
        remaining = count if state.is_unfiltered else str(self._surviving_sizes(type).get(owner.tree_key, 0))
        if remaining == "0":
            return remaining, f"?filter={EXCLUDE_ALL}"
        filters = [] if state.is_unfiltered else remaining_filters(state.conjunctions, type)
        return remaining, f"?{'&'.join(map(_filter_parameter, filters))}" if filters else ""

    def load_counts(self, rows: Iterable[EntityRow]) -> FilterEffects:
        """The same object, after it has looked up the collection sizes of some rows."""
        for row in rows:
            state = self._state(row)
            if not state.is_unfiltered:
                for type in {conjunction.type for conjunction in state.conjunctions}:
                    for level in range(depth(row.type) + 1, depth(type) + 1):
                        self._surviving_sizes(".".join(type.split(".")[:level]))
        self._states.clear()
        return self

    def is_selected(self, row: EntityRow) -> bool:
        """Whether an entity at the top of the response survives, by itself or through an entity below it."""
        return self._selection.is_selected(row, self._top_state)

    def surviving_rows_below(self, owner: EntityRow) -> Callable[[str, Collection[str]], Iterator[EntityRow]]:
        """The function that lists surviving entities below an entity; it replaces `View.subtree`."""
        state = self._state(owner)
        return lambda xid, types: self._selection.rows(state, types, *xids.subtree(xid))

    def _state(self, row: EntityRow) -> FilterState:
        level = depth(row.type)
        cached = self._states.get(level)
        if cached and cached[0] == row.tree_key:
            return cached[1]
        owner = self._states.get(level - 1)
        is_inside = owner is not None and (level == 1 or row.tree_key.startswith(f"{owner[0]}!"))
        state = (owner[1] if owner and is_inside else self._top_state).descend(row, self._selection.base_url)
        self._states[level] = row.tree_key, state
        return state

    def _surviving_sizes(self, type: str) -> dict[str, int]:
        """The sizes of the collections of a type, by the tree key of their owner; only owners that survive in part."""
        sizes = self._counts.get(type)
        if sizes is None:
            conjunctions = tuple(
                conjunction for conjunction in self._top_state.conjunctions if depth(conjunction.type) >= depth(type)
            )
            sizes = self._counts[type] = self._selection.count_by_owner(type, FilterState(conjunctions), *self._range)
        return sizes


def _filter_parameter(expressions: list[str]) -> str:
    return "filter=" + ",".join(quote(expression, safe=_SAFE_CHARACTERS) for expression in expressions)
