"""The entities that a request's filter selects: those below one path, their owners and their descendants.

Spec: core 1.0-rc4, "Filter Flag".
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Final

from annals.domain.filters import Conjunction, EntityFilter, depth, is_above
from annals.domain.values import xid as xids
from annals.domain.values.batched import batched
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import matches
from annals.projections.entities.filters.by_index import COLUMNS, FilterCompiler
from annals.projections.entities.filters.row_overrides import RowOverrides
from annals.projections.entities.filters.sql import (
    ALWAYS,
    SqlFragment,
    among_types,
    and_,
    in_list,
    join_fragments,
)
from annals.projections.entities.id_keys import id_key_bound, owner_expression, tree_key_expression, tree_key_of
from annals.projections.entities.rows import EntityRow, stored_row
from annals.projections.entities.visibility import EVERYTHING, Visibility
from annals.projections.entities.xref import XrefTargets

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

    base_url: absolute URL of the registry. row_overrides: None for the present. visibility: what the caller sees.
    """

    def __init__(
        self,
        db: Database,
        xid: str,
        filter: EntityFilter | None,
        base_url: str = "",
        row_overrides: RowOverrides | None = None,
        visibility: Visibility = EVERYTHING,
    ) -> None:
        self.low, self.high = xids.subtree(xid)
        self.visibility = visibility
        self.state = UNFILTERED if filter is None else FilterState(filter)
        self.base_url = base_url
        self.overrides = row_overrides or RowOverrides(XrefTargets(db))
        self.compiler = FilterCompiler(db, base_url, (self.low, self.high), row_overrides, visibility)
        self._db = db

    def keys(self, state: FilterState, type: str, low: str, high: str) -> SqlFragment | None:
        """A query for the id keys of surviving entities of a type; None if there can be none. low, high: tree keys."""
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
        owner_type = type.rpartition(".")[0]
        owner = owner_expression(self._db, "s.key", type, depth(type) - 1) if owner_type else "''"
        grouped_query = query.wrap(f"SELECT {owner} AS owner, count(*) FROM ({{}}) AS s GROUP BY owner")
        return {tree_key_of(owner_type, key): count for key, count in self._db.all(*grouped_query)}

    def rows(self, state: FilterState, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        """The surviving entities of some types between two keys, in tree order, streamed."""
        if state.is_unfiltered:
            return self._all_rows(types, low, high)
        queries = {type: query for type in types if (query := self.keys(state, type, low, high)) is not None}
        if not queries:
            return iter(())
        tree_keys = join_fragments(
            " UNION ALL ",
            (
                query.wrap(f"SELECT {tree_key_expression('u.key', type)} FROM ({{}}) AS u")
                for type, query in queries.items()
            ),
        )
        select = tree_keys.wrap(f"SELECT {COLUMNS} FROM entity WHERE tree_key IN ({{}})")
        query = and_(select, self._visible_condition(low, high), self._unchanged_condition())
        current = map(stored_row, self._db.stream(*query.wrap("{} ORDER BY tree_key")))
        overriding = chain.from_iterable(self.overriding_rows(type, keys) for type, keys in queries.items())
        return heapq.merge(current, sorted(overriding)) if self.overrides else current

    def with_descendants(self, members: Iterable[EntityRow], types: Collection[str]) -> Iterator[EntityRow]:
        """Members of the path's collection, in their order, each followed by its surviving descendants."""
        if not types:
            yield from members
            return
        for chunk in batched(members, BATCH_MEMBERS):
            states = [self.state.descend(row, self.base_url) for row in chunk]
            nested_rows = (
                {} if all(state.is_unfiltered for state in states) else self._descendants_by_member(chunk, types)
            )
            unfiltered = [row for row, state in zip(chunk, states, strict=True) if state.is_unfiltered]
            descendants = self._all_descendants(unfiltered, types)
            for row, state in zip(chunk, states, strict=True):
                yield row
                yield from next(descendants) if state.is_unfiltered else nested_rows.get(row.tree_key, ())

    @cached_property
    def shown_versions(self) -> dict[str, EntityRow]:
        """The Versions by key, if only an xref shows them and no row is stored for them: none, as overrides do."""
        return {}

    def by_keys(self, keys: Iterable[str]) -> Iterator[EntityRow]:
        """Rows by key, in the given order."""
        for chunk in batched(keys, BATCH_MEMBERS):
            overriding_rows = self.overrides.rows_by_key(chunk)
            current_keys = [key for key in chunk if key not in self.overrides.keys]
            sql = f"SELECT {COLUMNS} FROM entity WHERE {self._db.in_list('tree_key')}"
            current_rows = {
                row[0]: stored_row(row) for row in self._db.all(sql, [self._db.list_parameter(current_keys)])
            }
            for key in chunk:
                row = overriding_rows.get(key) or current_rows.get(key)
                if row is not None:
                    yield row

    def overriding_rows(self, type: str, keys: SqlFragment | None) -> Iterator[EntityRow]:
        """The images of changed entities of a type among those that a query selects, in tree order."""
        changed_keys = self.overrides.keys_of_type(type) if keys else ()
        if keys is None or not changed_keys:
            return
        key_query = keys.wrap("SELECT u.key FROM ({}) AS u WHERE ")
        is_changed = SqlFragment(self._db.in_list("u.key"), (self._db.list_parameter(changed_keys),))
        selected_keys = sorted(self._db.all(*join_fragments("", (key_query, is_changed))))
        for chunk in batched((tree_key_of(type, key) for (key,) in selected_keys), BATCH_MEMBERS):
            yield from self.overrides.rows_by_key(chunk).values()

    def _all_rows(self, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        if not types:
            return iter(())
        current = map(stored_row, self._db.stream(*self._all_rows_query(types, low, high)))
        return self._with_overriding_rows(current, types, low, high)

    def _with_overriding_rows(
        self, current: Iterator[EntityRow], types: Collection[str], low: str, high: str
    ) -> Iterator[EntityRow]:
        """Unchanged rows of some types between two keys, merged with the images of changed ones."""
        if not self.overrides:
            return current
        return heapq.merge(current, self.overrides.rows(types, low, high), key=lambda each: each.tree_key)

    def _all_rows_query(self, types: Collection[str], low: str, high: str) -> SqlFragment:
        if len(types) == 1:
            (type,) = types
            select = SqlFragment(f"SELECT {COLUMNS} FROM entity WHERE type = ?", (type,))
            bounds = id_key_bound(type, low), id_key_bound(type, high)
            key_range = self.compiler.visible_condition("id_key", type, *bounds)
            unchanged = self.compiler.unchanged_condition("id_key", type)
            return and_(select, key_range, unchanged).wrap("{} ORDER BY id_key")
        select = among_types(types).wrap(f"SELECT {COLUMNS} FROM entity WHERE {{}}")
        query = and_(select, self._visible_condition(low, high), self._unchanged_condition())
        return query.wrap("{} ORDER BY tree_key")

    def _visible_condition(self, low: str, high: str) -> SqlFragment:
        return self.visibility.tree_keys(self._db, "tree_key", low, high)

    def _unchanged_condition(self) -> SqlFragment:
        if not self.overrides:
            return ALWAYS
        return in_list(self._db, "tree_key", self.overrides.keys).wrap("NOT ({})")

    def _all_descendants(self, members: Sequence[EntityRow], types: Collection[str]) -> Iterator[Iterator[EntityRow]]:
        """The descendants of each member, streamed by one statement: those of one are read before those of the next."""
        if not members:
            return
        rows = map(stored_row, self._db.stream(*self._all_descendants_query(members, types)))
        key_length = 2 * depth(members[0].type) + 1
        groups = groupby(rows, lambda row: "!".join(row.tree_key.split("!")[:key_length]))
        none: tuple[str, Iterator[EntityRow]] = "", iter(())
        key, descendants = next(groups, none)
        for member in members:
            is_next = key == member.tree_key
            yield self._with_overriding_rows(descendants if is_next else iter(()), types, *xids.subtree(member.xid))
            if is_next:
                key, descendants = next(groups, none)

    def _all_descendants_query(self, members: Sequence[EntityRow], types: Collection[str]) -> SqlFragment:
        keys = self._db.list_parameter(row.tree_key for row in members)
        select = SqlFragment(
            f"SELECT {COLUMNS} FROM {self._db.numbered_list_table} AS k CROSS JOIN entity"
            " WHERE tree_key > k.key || '!' AND tree_key < k.key || '\"'",
            (keys,),
        )
        return and_(select, among_types(types), self._unchanged_condition()).wrap("{} ORDER BY k.number, tree_key")

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
