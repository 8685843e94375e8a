"""Filters and sorts by scanning: the counterpart of `by_index` for past moments, which no index covers.

It reads all rows between two keys in tree order, resolves each xref, and updates the filter's states on the way. Memory
does not grow with the number of rows, except for the page keys of a page or of a whole sorted result, for the Versions
that one xref shows, and for `xref.MAX_KEPT_VERSIONS`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Final

from annals.domain.filters import EntityFilter, depth
from annals.domain.values import xid as xids
from annals.domain.values.batched import batched
from annals.projections.entities import xref
from annals.projections.entities.filters.by_document import sort_key_of
from annals.projections.entities.filters.by_index import COLUMNS
from annals.projections.entities.filters.pages import CollectionMembers, PageKey
from annals.projections.entities.filters.selection import BATCH_MEMBERS, FilterState, Selection
from annals.projections.entities.filters.sql import SqlFragment, among_types, and_
from annals.projections.entities.id_keys import id_key_bound
from annals.projections.entities.past_database import PastDatabase
from annals.projections.entities.rows import EntityRow, stored_row
from annals.projections.entities.visibility import EVERYTHING, Visibility

_SELECT_RANGE: Final = f"SELECT {COLUMNS} FROM entity WHERE tree_key >= ? AND tree_key < ?"
_SELECT_TYPE_RANGE: Final = (
    f"SELECT {COLUMNS} FROM entity WHERE type = ? AND id_key >= ? AND id_key < ? ORDER BY id_key"
)


class ScanSelection(Selection):
    """See `Selection`."""

    def __init__(
        self,
        past_database: PastDatabase,
        xid: str,
        filter: EntityFilter | None,
        base_url: str = "",
        visibility: Visibility = EVERYTHING,
    ) -> None:
        super().__init__(past_database, xid, filter, base_url, visibility=visibility)
        self._past_database = past_database
        self._xid = xid
        self._targets = xref.XrefTargets(past_database)

    def is_selected(self, row: EntityRow, parent_state: FilterState | None = None) -> bool:
        state = (parent_state or self.state).descend(row, self.base_url)
        types = {conjunction.type for conjunction in state.conjunctions}
        return state.is_unfiltered or any(True for _ in self.rows(state, types, *xids.subtree(row.xid)))

    def count(self, type: str) -> int:
        return sum(1 for _ in self.rows(self.state, {type}, self.low, self.high))

    def count_by_owner(self, type: str, state: FilterState, low: str, high: str) -> dict[str, int]:
        owner = next(iter(self._targets.resources(self._rows_of_key(xids.tree_key(self._xid)))), None)
        inner_state = state.descend(owner, self.base_url) if owner else state
        return Counter(xids.tree_key(row.parent or "") for row in self.rows(inner_state, {type}, low, high))

    def rows(self, state: FilterState, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        """The surviving entities of some types from one key to another, in tree order, streamed."""
        if state.is_empty or not types:
            return iter(())
        if state.is_unfiltered:
            return self._read_entities(types, low, high)
        scanned_types = {*types, *(conjunction.type for conjunction in state.conjunctions)}
        survivors = surviving_rows(self._read_entities(_with_owners(scanned_types), low, high), state, self.base_url)
        return (row for row in survivors if row.type in types)

    def with_descendants(self, members: Iterable[EntityRow], types: Collection[str]) -> Iterator[EntityRow]:
        for row in members:
            yield row
            if types:
                yield from self.rows(self.state.descend(row, self.base_url), types, *xids.subtree(row.xid))

    def by_keys(self, keys: Iterable[str]) -> Iterator[EntityRow]:
        if shown := self.shown_versions:
            yield from (shown[key] for key in keys if key in shown)
            return
        for chunk in batched(keys, BATCH_MEMBERS):
            sql = f"SELECT {COLUMNS} FROM entity WHERE {self._db.in_list('tree_key')}"
            rows = {row[0]: stored_row(row) for row in self._db.all(sql, [self._db.list_parameter(chunk)])}
            yield from self._targets.resources([rows[key] for key in chunk if key in rows])

    @cached_property
    def shown_versions(self) -> dict[str, EntityRow]:
        """See `Selection`: those of a Resource with an xref, as the past has no overrides."""
        resource = _resource_above(self.low)
        rows = self._rows_of_key(resource) if resource else []
        versions = chain.from_iterable(map(self._targets.versions, rows))
        return {row.tree_key: row for row in versions if self.low <= row.tree_key < self.high}

    def _read_entities(self, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        """The entities of some types from one key to another, including those shown by xrefs."""
        if self.shown_versions and self.low <= low and high <= self.high:
            shown = self.shown_versions.values()
            return (row for row in shown if low <= row.tree_key < high and row.type in types)
        resource = _resource_above(low)
        if resource:
            resolved = self._resolve_xrefs(self._rows_of_key(resource), types)
            matching_rows = [row for row in resolved if low <= row.tree_key < high]
            if matching_rows:
                return iter(matching_rows)
        # A Resource with an xref must be read to find its Versions.
        scanned_types = tuple(
            sorted({*types, *(type_name.rpartition(".")[0] for type_name in types if depth(type_name) == 3)})
        )
        rows = self.visibility.among(self._read_range(scanned_types, low, high))
        return self._resolve_xrefs(rows, types)

    def _read_range(self, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        if len(types) == 1:
            (type,) = types
            bounds = id_key_bound(type, low), id_key_bound(type, high)
            return map(stored_row, self._db.stream(_SELECT_TYPE_RANGE, (type, *bounds)))
        query = and_(SqlFragment(_SELECT_RANGE, (low, high)), among_types(types)).wrap("{} ORDER BY tree_key")
        return map(stored_row, self._db.stream(*query))

    def _rows_of_key(self, tree_key: str) -> list[EntityRow]:
        values = self._past_database.entity(tree_key)
        return [stored_row(values)] if values else []

    def _resolve_xrefs(self, rows: Iterable[EntityRow], types: Collection[str]) -> Iterator[EntityRow]:
        """The rows of some types, with each xref replaced by the rows it shows; without a target it stays as it is."""
        for row in rows:
            if row.type in types:
                yield from self._targets.resources([row])
            if f"{row.type}.versions" in types:
                yield from self._targets.versions(row)


class ScannedMembers(CollectionMembers):
    """See `CollectionMembers`. A page sorted by an attribute reads the whole collection, but stores only the page."""

    def page_keys(
        self, after: PageKey | None = None, backwards: bool = False, limit: int | None = None
    ) -> Iterator[PageKey]:
        selection, descending = self._selection, self._sort.descending is not backwards
        if not self._sort.path and selection.state.is_unfiltered and not selection.shown_versions:
            return super().page_keys(after, backwards, limit)
        page_keys = (
            PageKey(*sort_key_of(row, self._sort))
            for row in selection.rows(selection.state, {self._type}, selection.low, selection.high)
        )
        remaining = (
            page_key
            for page_key in page_keys
            if after is None or (page_key < after if descending else page_key > after)
        )
        if not self._sort.path and not descending:
            return remaining
        if limit is None:
            return iter(sorted(remaining, reverse=descending))
        return iter((heapq.nlargest if descending else heapq.nsmallest)(limit, remaining))


def surviving_rows(rows: Iterable[EntityRow], state: FilterState, base_url: str) -> Iterator[EntityRow]:
    """The rows that survive a filter, owners as soon as a descendant does; the input is in tree order.

    Memory: O(depth). state: the filter state of the outermost rows. base_url: absolute URL of the registry.
    """
    ancestor_states: list[tuple[str, FilterState]] = [("", state)]
    pending_owners: list[EntityRow] = []
    for row in rows:
        while not row.tree_key.startswith(ancestor_states[-1][0]):
            ancestor_states.pop()
        row_state = ancestor_states[-1][1].descend(row, base_url)
        ancestor_states.append((f"{row.tree_key}!", row_state))
        pending_owners = [owner for owner in pending_owners if row.tree_key.startswith(f"{owner.tree_key}!")]
        pending_owners.append(row)
        if row_state.is_unfiltered:
            yield from pending_owners
            pending_owners.clear()
        elif row_state.is_empty:
            pending_owners.pop()


def _resource_above(low: str) -> str | None:
    """The key of the Resource above the keys that start at `low`; None if there is none."""
    parts = low.split("!")
    return "!".join(parts[:5]) if len(parts) > 5 else None


def _with_owners(types: Iterable[str]) -> set[str]:
    """The types and those of all their possible owners."""
    split_types = (type_name.split(".") for type_name in types)
    return {".".join(segments[: end + 1]) for segments in split_types for end in range(len(segments))}
