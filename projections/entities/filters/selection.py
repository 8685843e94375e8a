"""The entities that a request's filter selects: those below one path, their owners and their descendants.

Spec: core 1.0-rc4, "Filter Flag".
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from domain.filters import Conjunction, EntityFilter, depth, is_above
from domain.values import xid as xids
from projections.database.drivers import Database
from projections.entities.filters.by_document import matches
from projections.entities.filters.by_index import COLUMNS, FilterCompiler, RowOverrides
from projections.entities.filters.sql import SqlFragment, ancestor_key, and_, between, join_fragments
from projections.entities.rows import EntityRow, stored_row

T = TypeVar("T")

#: The number of members of a collection whose nested entities are looked up together.
BATCH_MEMBERS: Final = 200


@dataclass(frozen=True, slots=True)
class FilterState:
    """The rest of a filter that entities below a surviving one must meet. whole: all of them survive."""

    conjunctions: EntityFilter = ()
    whole: bool = False

    def descend(self, row: EntityRow, base: str) -> FilterState:
        """The state below an entity at this level.

        The entity is filtered out if it has no conjunctions and is not whole.
        """
        if self.whole:
            return self
        left: dict[Conjunction, None] = {}
        for each in self.conjunctions:
            if is_above(row.type, each.type) and all(matches(one, row, base) for one in each.for_type(row.type)):
                deeper = tuple(one for one in each.expressions if one.type != row.type)
                if not deeper:
                    return WHOLE
                left[Conjunction(deeper)] = None
        return FilterState(tuple(left))

    @property
    def is_empty(self) -> bool:
        """Whether nothing survives."""
        return not self.whole and not self.conjunctions


WHOLE: Final = FilterState(whole=True)


class Selection:
    """The entities below a path that survive a filter. xid: of the entity or collection. filter: None for all.

    base: absolute URL of the registry. overrides: None for the present.
    """

    def __init__(
        self, db: Database, xid: str, filter: EntityFilter | None, base: str = "", moment: RowOverrides | None = None
    ) -> None:
        self.low, self.high = xids.subtree(xid)
        self.state = WHOLE if filter is None else FilterState(filter)
        self.base = base
        self.overrides = moment or RowOverrides()
        self.compiler = FilterCompiler(db, base, (self.low, self.high), moment)
        self._db = db

    def keys(self, state: FilterState, type: str, low: str, high: str) -> SqlFragment | None:
        """A query for the keys of surviving entities of a type; None if there can be none."""
        if state.whole:
            return self.compiler.all_keys(type, low, high)
        return self.compiler.surviving_keys(state.conjunctions, type, low, high)

    def survives(self, row: EntityRow, above: FilterState | None = None) -> bool:
        """Whether an entity survives, by itself or through a descendant. above: the filter state of its level."""
        state = (above or self.state).descend(row, self.base)
        return state.whole or any(
            self._db.one(*query.within("SELECT key FROM ({}) AS s LIMIT 1")) is not None
            for each in state.conjunctions
            if (query := self.keys(FilterState((each,)), each.type, *xids.subtree(row.xid))) is not None
        )

    def count(self, type: str) -> int:
        """The number of surviving entities of a type."""
        query = self.keys(self.state, type, self.low, self.high)
        found: int = self._db.one(*query.within("SELECT count(*) FROM ({}) AS s"))[0] if query else 0
        return found

    def count_by_owner(self, type: str, state: FilterState, low: str, high: str) -> dict[str, int]:
        """The number of surviving entities of a type between two keys, by the tree key of their owner."""
        query = self.keys(state, type, low, high)
        if query is None:
            return {}
        owner = ancestor_key("s.key", type, depth(type) - 1, self._db.find_function) if depth(type) > 1 else "'!'"
        grouped = query.within(f"SELECT {owner} AS owner, count(*) FROM ({{}}) AS s GROUP BY owner")
        return dict(self._db.all(*grouped))

    def rows(self, state: FilterState, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        """The surviving entities of some types between two keys, in tree order, streamed."""
        if state.whole:
            return self._all(types, low, high)
        queries = [query for type in types if (query := self.keys(state, type, low, high)) is not None]
        if not queries:
            return iter(())
        keys = join_fragments(" UNION ALL ", (query.within("SELECT key FROM ({}) AS u") for query in queries))
        start = SqlFragment(f"SELECT {COLUMNS} FROM entity WHERE tree_key IN ({keys.text})", keys.values)
        query = and_(start, between("tree_key", low, high), self.compiler.unchanged_condition("tree_key"))
        now = map(stored_row, self._db.stream(*query.within("{} ORDER BY tree_key")))
        return (
            heapq.merge(now, self.overriding_rows(keys), key=lambda row: row.tree_key) if self.overrides.images else now
        )

    def with_descendants(self, members: Iterable[EntityRow], types: Collection[str]) -> Iterator[EntityRow]:
        """Members of the path's collection, in their order, each followed by its surviving descendants."""
        if not types:
            yield from members
            return
        for chunk in chunked(members):
            states = [self.state.descend(row, self.base) for row in chunk]
            nested = {} if all(state.whole for state in states) else self._nested(chunk, types)
            for row, state in zip(chunk, states, strict=True):
                yield row
                yield from self._all(types, *xids.subtree(row.xid)) if state.whole else nested.get(row.tree_key, ())

    def by_keys(self, keys: Iterable[str]) -> Iterator[EntityRow]:
        """Rows by key, in the given order."""
        for chunk in chunked(keys):
            wanted = [key for key in chunk if key not in self.overrides.images]
            sql = f"SELECT {COLUMNS} FROM entity WHERE {self._db.in_list('tree_key')}"
            found = {row[0]: stored_row(row) for row in self._db.all(sql, [self._db.list_parameter(wanted)])}
            for key in chunk:
                row = found.get(key) or self.overrides.images.get(key)
                if row is not None:
                    yield row

    def overriding_rows(self, keys: SqlFragment | None) -> Iterator[EntityRow]:
        """The images of changed entities among those that a query selects."""
        if keys is None:
            return
        start = keys.within("SELECT u.key FROM ({}) AS u WHERE ")
        query = SqlFragment(
            start.text + self._db.in_list("u.key"), (*start.values, self._db.list_parameter(self.overrides.images))
        )
        for (key,) in sorted(self._db.all(*query)):
            if row := self.overrides.images.get(key):
                yield row

    def _all(self, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        if not types:
            return iter(())
        marks = ", ".join("?" for _ in types)
        # The concatenation hides the column from the index by type, whose ranges would have to be merged.
        start = SqlFragment(f"SELECT {COLUMNS} FROM entity WHERE type || '' IN ({marks})", tuple(types))
        query = and_(start, between("tree_key", low, high), self.compiler.unchanged_condition("tree_key"))
        now = map(stored_row, self._db.stream(*query.within("{} ORDER BY tree_key")))
        if not self.overrides.images:
            return now
        then = (image for key, image in sorted(self.overrides.images.items()) if low < key < high and image)
        return heapq.merge(now, (image for image in then if image.type in types), key=lambda each: each.tree_key)

    def _nested(self, members: Sequence[EntityRow], types: Collection[str]) -> dict[str, list[EntityRow]]:
        """The surviving descendants of some members, by the members' tree keys."""
        keys = sorted(row.tree_key for row in members)
        found: dict[str, list[EntityRow]] = {key: [] for key in keys}
        place = depth(members[0].type)
        for row in self.rows(self.state, types, keys[0], f'{keys[-1]}"'):
            owner = "!".join(row.tree_key.split("!")[: 2 * place + 1])
            if owner in found:
                found[owner].append(row)
        return found


def chunked(items: Iterable[T]) -> Iterator[list[T]]:
    """The items in lists of at most BATCH_MEMBERS."""
    waiting = iter(items)
    while chunk := list(islice(waiting, BATCH_MEMBERS)):
        yield chunk
