"""The entities that a request's filter selects: those below one path, their owners and their descendants.

Spec: core 1.0-rc4, "Filter Flag".
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from annals.domain.filters import Conjunction, EntityFilter, depth, is_above
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import matches
from annals.projections.entities.filters.by_index import COLUMNS, FilterCompiler, RowOverrides
from annals.projections.entities.filters.sql import SqlFragment, ancestor_key, and_, between, join_fragments
from annals.projections.entities.rows import EntityRow, stored_row

T = TypeVar("T")

#: The number of members of a collection whose nested entities are looked up together.
BATCH_MEMBERS: Final = 200


@dataclass(frozen=True, slots=True)
class FilterState:
    """The rest of a filter that entities below a surviving one must meet. is_unfiltered: all of them survive."""

    conjunctions: EntityFilter = ()
    is_unfiltered: bool = False

    def descend(self, row: EntityRow, base_url: str) -> FilterState:
        """The state below an entity at this level.

        The entity is filtered out if it has no conjunctions and is not whole.
        """
        if self.is_unfiltered:
            return self
        remaining: dict[Conjunction, None] = {}
        for conjunction in self.conjunctions:
            if is_above(row.type, conjunction.type) and all(
                matches(expression, row, base_url) for expression in conjunction.for_type(row.type)
            ):
                deeper_expressions = tuple(
                    expression for expression in conjunction.expressions if expression.type != row.type
                )
                if not deeper_expressions:
                    return UNFILTERED
                remaining[Conjunction(deeper_expressions)] = None
        return FilterState(tuple(remaining))

    @property
    def is_empty(self) -> bool:
        """Whether nothing survives."""
        return not self.is_unfiltered and not self.conjunctions


UNFILTERED: Final = FilterState(is_unfiltered=True)


class Selection:
    """The entities below a path that survive a filter. xid: of the entity or collection. filter: None for all.

    base_url: absolute URL of the registry. row_overrides: None for the present.
    """

    def __init__(
        self,
        db: Database,
        xid: str,
        filter: EntityFilter | None,
        base_url: str = "",
        row_overrides: RowOverrides | None = None,
    ) -> None:
        self.low, self.high = xids.subtree(xid)
        self.state = UNFILTERED if filter is None else FilterState(filter)
        self.base_url = base_url
        self.overrides = row_overrides or RowOverrides()
        self.compiler = FilterCompiler(db, base_url, (self.low, self.high), row_overrides)
        self._db = db

    def keys(self, state: FilterState, type: str, low: str, high: str) -> SqlFragment | None:
        """A query for the keys of surviving entities of a type; None if there can be none."""
        if state.is_unfiltered:
            return self.compiler.all_keys(type, low, high)
        return self.compiler.surviving_keys(state.conjunctions, type, low, high)

    def is_selected(self, row: EntityRow, parent_state: FilterState | None = None) -> bool:
        """Whether an entity survives, by itself or through a descendant.

        parent_state: the filter state of its level.
        """
        state = (parent_state or self.state).descend(row, self.base_url)
        return state.is_unfiltered or any(
            self._db.one(*query.wrap("SELECT key FROM ({}) AS s LIMIT 1")) is not None
            for conjunction in state.conjunctions
            if (query := self.keys(FilterState((conjunction,)), conjunction.type, *xids.subtree(row.xid))) is not None
        )

    def count(self, type: str) -> int:
        """The number of surviving entities of a type."""
        query = self.keys(self.state, type, self.low, self.high)
        total: int = self._db.one(*query.wrap("SELECT count(*) FROM ({}) AS s"))[0] if query else 0
        return total

    def count_by_owner(self, type: str, state: FilterState, low: str, high: str) -> dict[str, int]:
        """The number of surviving entities of a type between two keys, by the tree key of their owner."""
        query = self.keys(state, type, low, high)
        if query is None:
            return {}
        owner = ancestor_key("s.key", type, depth(type) - 1, self._db.find_function) if depth(type) > 1 else "'!'"
        grouped_query = query.wrap(f"SELECT {owner} AS owner, count(*) FROM ({{}}) AS s GROUP BY owner")
        return dict(self._db.all(*grouped_query))

    def rows(self, state: FilterState, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        """The surviving entities of some types between two keys, in tree order, streamed."""
        if state.is_unfiltered:
            return self._all_rows(types, low, high)
        queries = [query for type in types if (query := self.keys(state, type, low, high)) is not None]
        if not queries:
            return iter(())
        keys = join_fragments(" UNION ALL ", (query.wrap("SELECT key FROM ({}) AS u") for query in queries))
        select = SqlFragment(f"SELECT {COLUMNS} FROM entity WHERE tree_key IN ({keys.text})", keys.values)
        query = and_(select, between("tree_key", low, high), self.compiler.unchanged_condition("tree_key"))
        current = map(stored_row, self._db.stream(*query.wrap("{} ORDER BY tree_key")))
        return (
            heapq.merge(current, self.overriding_rows(keys), key=lambda row: row.tree_key)
            if self.overrides.images
            else current
        )

    def with_descendants(self, members: Iterable[EntityRow], types: Collection[str]) -> Iterator[EntityRow]:
        """Members of the path's collection, in their order, each followed by its surviving descendants."""
        if not types:
            yield from members
            return
        for chunk in split_batches(members):
            states = [self.state.descend(row, self.base_url) for row in chunk]
            nested_rows = (
                {} if all(state.is_unfiltered for state in states) else self._descendants_by_member(chunk, types)
            )
            for row, state in zip(chunk, states, strict=True):
                yield row
                yield from (
                    self._all_rows(types, *xids.subtree(row.xid))
                    if state.is_unfiltered
                    else nested_rows.get(row.tree_key, ())
                )

    def by_keys(self, keys: Iterable[str]) -> Iterator[EntityRow]:
        """Rows by key, in the given order."""
        for chunk in split_batches(keys):
            current_keys = [key for key in chunk if key not in self.overrides.images]
            sql = f"SELECT {COLUMNS} FROM entity WHERE {self._db.in_list('tree_key')}"
            current_rows = {
                row[0]: stored_row(row) for row in self._db.all(sql, [self._db.list_parameter(current_keys)])
            }
            for key in chunk:
                row = current_rows.get(key) or self.overrides.images.get(key)
                if row is not None:
                    yield row

    def overriding_rows(self, keys: SqlFragment | None) -> Iterator[EntityRow]:
        """The images of changed entities among those that a query selects."""
        if keys is None:
            return
        key_query = keys.wrap("SELECT u.key FROM ({}) AS u WHERE ")
        query = SqlFragment(
            key_query.text + self._db.in_list("u.key"),
            (*key_query.values, self._db.list_parameter(self.overrides.images)),
        )
        for (key,) in sorted(self._db.all(*query)):
            if row := self.overrides.images.get(key):
                yield row

    def _all_rows(self, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        if not types:
            return iter(())
        placeholders = ", ".join("?" for _ in types)
        # The concatenation hides the column from the index by type, whose ranges would have to be merged.
        select = SqlFragment(f"SELECT {COLUMNS} FROM entity WHERE type || '' IN ({placeholders})", tuple(types))
        query = and_(select, between("tree_key", low, high), self.compiler.unchanged_condition("tree_key"))
        current = map(stored_row, self._db.stream(*query.wrap("{} ORDER BY tree_key")))
        if not self.overrides.images:
            return current
        overridden = (image for key, image in sorted(self.overrides.images.items()) if low < key < high and image)
        return heapq.merge(
            current, (image for image in overridden if image.type in types), key=lambda each: each.tree_key
        )

    def _descendants_by_member(
        self, members: Sequence[EntityRow], types: Collection[str]
    ) -> dict[str, list[EntityRow]]:
        """The surviving descendants of some members, by the members' tree keys."""
        keys = sorted(row.tree_key for row in members)
        descendants: dict[str, list[EntityRow]] = {key: [] for key in keys}
        member_depth = depth(members[0].type)
        for row in self.rows(self.state, types, keys[0], f'{keys[-1]}"'):
            owner = "!".join(row.tree_key.split("!")[: 2 * member_depth + 1])
            if owner in descendants:
                descendants[owner].append(row)
        return descendants


def split_batches(items: Iterable[T]) -> Iterator[list[T]]:
    """The items in lists of at most BATCH_MEMBERS."""
    iterator = iter(items)
    while chunk := list(islice(iterator, BATCH_MEMBERS)):
        yield chunk
