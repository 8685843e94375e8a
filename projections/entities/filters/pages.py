"""Pages over the members of one collection, sorted, starting at any member.

A page key is what sorts a member: its value in the attribute index, and its tree key. A page starts after such a key,
so members that are added or removed elsewhere do not shift it. Sorted by id, a page is a range of keys. Sorted by an
attribute, it is a range of the index after the members without a value, or the reverse.
Spec: core 1.0-rc4, "Sort Flag"; Pagination 0.1.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from annals.domain.filters import Sort
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import sort_key_of
from annals.projections.entities.filters.by_index import COLUMNS
from annals.projections.entities.filters.missing_attributes import (
    MAX_KEYS,
    IdKeys,
    MissingAttributeCache,
    MissingAttributeQuery,
)
from annals.projections.entities.filters.selection import Selection
from annals.projections.entities.filters.sql import ALWAYS, SqlFragment, and_, join_fragments
from annals.projections.entities.id_keys import id_key, id_key_bound, tree_key_of
from annals.projections.entities.index_paths import find_paths
from annals.projections.entities.index_values import EMPTY_VALUE
from annals.projections.entities.leaves import path_key, path_text
from annals.projections.entities.rows import EntityRow, stored_row

#: A collection is sorted from its rows up to the first size, and up to the second one if others have most of the values
#: in the index. Otherwise the index is read in order.
FEW_SORTED: Final = 50
MAX_SORTED: Final = 5000
#: The number of values in the index that are read as fast as a row.
VALUES_PER_ROW: Final = 30
#: The number of members that are searched for those without a value, before all are compared with the index.
MAX_SEARCHED: Final = 2000

BY_ID: Final = Sort(())

K = TypeVar("K", "PageKey", str)


class PageKey(NamedTuple):
    """The sort position of a member. value: see `index_values`; empty for no value and in the order by id."""

    value: bytes
    tree_key: str


class CollectionMembers:
    """The members of a collection that survive a filter. size: its approximate size before any filter.

    missing_attributes: the cache of members that lack the attribute they are sorted by.
    """

    def __init__(
        self,
        db: Database,
        selection: Selection,
        type: str,
        sort: Sort | None,
        size: int,
        missing_attributes: MissingAttributeCache | None = None,
    ) -> None:
        self._missing_attributes = missing_attributes or MissingAttributeCache()
        self._db = db
        self._selection = selection
        self._type = type
        self._sort = sort or BY_ID
        self._size = size

    def rows(self, page_keys: Iterable[PageKey]) -> Iterator[EntityRow]:
        """The members with some page keys."""
        return self._selection.by_keys(page_key.tree_key for page_key in page_keys)

    def page_keys(
        self, after: PageKey | None = None, backwards: bool = False, limit: int | None = None
    ) -> Iterator[PageKey]:
        """The page keys after (or before) one, nearest first. limit: a hint, the maximum number wanted."""
        descending = self._sort.descending is not backwards
        low, high = self._selection.low, self._selection.high
        if not self._sort.path:
            if after:
                # Descendants sort after their owner: a quotation mark sorts above `!` and below all characters of ids.
                low, high = (low, after.tree_key) if descending else (f'{after.tree_key}"', high)
            return self._by_id(low, high, descending, limit)
        return self._by_value(after, descending, limit) if self._uses_index() else self._by_row(after, descending)

    def _uses_index(self) -> bool:
        """Whether the index is a faster way to the order than the rows."""
        if not FEW_SORTED < self._size <= MAX_SORTED:
            return self._size > MAX_SORTED
        limit = VALUES_PER_ROW * self._size
        values = f"(SELECT 1 FROM attribute WHERE path = ? LIMIT {limit + 1}) AS v"
        (count,) = self._db.one(f"SELECT count(*) FROM {values}", (self._path_number(),))
        return int(count) <= limit

    def _by_id(self, low: str, high: str, descending: bool, limit: int | None) -> Iterator[PageKey]:
        query = self._selection.keys(self._selection.state, self._type, low, high)
        if query is None:
            return
        ordered_query = query.wrap(f"SELECT s.key FROM ({{}}) AS s ORDER BY s.key{_DIRECTION[descending]}")
        for (key,) in self._db.stream(*_with_limit(ordered_query, limit)):
            yield self._page_key(EMPTY_VALUE, key)

    def _by_row(self, after: PageKey | None, descending: bool) -> Iterator[PageKey]:
        selection = self._selection
        rows = selection.rows(selection.state, {self._type}, selection.low, selection.high)
        return iter(self._sort_rows(rows, after, descending))

    def _by_value(self, after: PageKey | None, descending: bool, limit: int | None) -> Iterator[PageKey]:
        sources = [self._with_value(after, descending, limit)]
        if after is None or descending or after.value == EMPTY_VALUE:
            after_key = after if after and after.value == EMPTY_VALUE else None
            missing_keys = self._keys_without_value(after_key, descending, limit)
            sources.append(self._page_key(EMPTY_VALUE, key) for key in missing_keys)
        current = chain.from_iterable(sources if descending else reversed(sources))
        other_sources = [
            source
            for source in (self._overriding_keys(after, descending), self._omitted_page_keys(after, descending))
            if source
        ]
        return heapq.merge(current, *other_sources, reverse=descending) if other_sources else current

    def _page_key(self, value: bytes, key: str) -> PageKey:
        return PageKey(bytes(value), tree_key_of(self._type, key))

    def _with_value(self, after: PageKey | None, descending: bool, limit: int | None) -> Iterator[PageKey]:
        """The members that have the attribute, from the index."""
        filter_condition = self._filter_condition("a.id_key")
        if filter_condition is None or (after and descending and after.value == EMPTY_VALUE):
            return
        conditions = [*self._leaf_conditions(), filter_condition]
        if after and after.value != EMPTY_VALUE:
            sign, start = "<" if descending else ">", (after.value, id_key(after.tree_key))
            # The first condition is the start of the index scan; the second is the exact condition.
            conditions.append(SqlFragment(f"a.value {sign}= ?", start[:1]))
            conditions.append(SqlFragment(f"(a.value, a.id_key) {sign} (?, ?)", start))
        order = ", ".join(f"{column}{_DIRECTION[descending]}" for column in ("a.value", "a.id_key"))
        select = SqlFragment("SELECT a.value, a.id_key FROM attribute AS a WHERE 1 = 1")
        query = and_(select, *conditions).wrap(f"{{}} ORDER BY {order}")
        for value, key in self._db.stream(*_with_limit(query, limit)):
            yield self._page_key(value, key)

    def _leaf_conditions(self) -> list[SqlFragment]:
        """The conditions on `a` for the members' values of the attribute."""
        return [
            SqlFragment("a.path = ? AND a.value > ?", (self._path_number(), EMPTY_VALUE)),
            self._selection.compiler.visible_condition("a.id_key", self._type, *self._key_range()),
            self._selection.compiler.unchanged_condition("a.id_key", self._type),
        ]

    def _path_number(self) -> int:
        return next((number for number, _ in find_paths(self._db, self._type, [self._sort_path])), 0)

    def _key_range(self) -> tuple[str, str]:
        return id_key_bound(self._type, self._selection.low), id_key_bound(self._type, self._selection.high)

    def _keys_without_value(self, after: PageKey | None, descending: bool, limit: int | None) -> Iterator[str]:
        """The id keys of the members without the attribute."""
        last_key = id_key(after.tree_key) if after else None
        missing_keys = self._cached_missing_keys()
        if missing_keys is not None:
            ordered_keys = reversed(missing_keys) if descending else missing_keys
            yield from (key for key in ordered_keys if _is_after(key, last_key, descending))
            return
        if limit is not None:
            searched_count = 0
            for row in self._indexed_members(last_key, descending):
                searched_count, last_key = searched_count + 1, row.id_key
                if sort_key_of(row, self._sort)[0] == EMPTY_VALUE:
                    yield last_key
            if searched_count < MAX_SEARCHED:
                return
        query = self._without_value_query(last_key, descending)
        yield from (key for (key,) in self._db.stream(*_with_limit(query, limit))) if query else ()

    def _indexed_members(self, after: str | None, descending: bool) -> Iterator[EntityRow]:
        """The current rows of the members in the index, by id key."""
        query = self._members_query(COLUMNS, after, descending)
        if query is None:
            return iter(())
        ordered_query = query.wrap(f"{{}} ORDER BY e.id_key{_DIRECTION[descending]}")
        return map(stored_row, self._db.stream(*_with_limit(ordered_query, MAX_SEARCHED)))

    def _members_query(self, columns: str, after: str | None, descending: bool) -> SqlFragment | None:
        """The members that the index has, after an id key."""
        (low, high), compiler = self._key_range(), self._selection.compiler
        if after is not None:
            low, high = (low, after) if descending else (after, high)
        filter_condition = self._filter_condition("e.id_key")
        if filter_condition is None:
            return None
        return and_(
            SqlFragment(f"SELECT {columns} FROM entity AS e WHERE e.type = '{self._type}'"),
            compiler.visible_condition("e.id_key", self._type, low, high),
            filter_condition,
            compiler.unchanged_condition("e.id_key", self._type),
            compiler.omitted.not_omitted_condition("e.id_key", self._type),
        )

    def _without_value_query(self, after: str | None, descending: bool) -> SqlFragment | None:
        members = self._members_query("e.id_key", after, descending)
        if members is None:
            return None
        with_value = and_(SqlFragment("SELECT a.id_key FROM attribute AS a WHERE 1 = 1"), *self._leaf_conditions())
        keys = join_fragments(" EXCEPT ", (members, with_value))
        return keys.wrap(f"SELECT s.id_key FROM ({{}}) AS s ORDER BY s.id_key{_DIRECTION[descending]}")

    def _cached_missing_keys(self) -> list[str] | None:
        """The id keys of a large collection's members without the attribute; None if too many or unknown."""
        selection = self._selection
        if not selection.state.is_unfiltered:
            return None
        if selection.overrides and not selection.overrides.is_newer_only:
            return None
        query = MissingAttributeQuery(self._type, self._sort_path, *self._key_range())
        keys = self._missing_attributes.members_without(
            self._db, query, self._find_missing_keys, self._filter_missing_keys
        )
        changed_keys = {*selection.overrides.changed_keys_of_type(self._type)}
        return None if keys is None else [key for key in keys if key not in changed_keys]

    def _find_missing_keys(self) -> IdKeys | None:
        # Counting the values is cheaper than searching for members without one.
        select = SqlFragment("SELECT count(*) FROM attribute AS a WHERE 1 = 1")
        (count,) = self._db.one(*and_(select, *self._leaf_conditions()))
        omitted_count = len(self._selection.compiler.omitted.keys(self._type))
        changed_count = len(self._selection.overrides.keys_of_type(self._type))
        missing_count = self._size - count - omitted_count - changed_count
        if missing_count == 0:
            return frozenset()
        query = self._without_value_query(None, descending=False) if 0 < missing_count <= MAX_KEYS else None
        return frozenset(key for (key,) in self._db.all(*query)) if query else None

    def _filter_missing_keys(self, keys: Sequence[str]) -> IdKeys:
        members = self._members_query(COLUMNS, None, descending=False)
        assert members is not None, "nothing is filtered"
        some = SqlFragment(self._db.in_list("e.id_key"), (self._db.list_parameter(keys),))
        rows = map(stored_row, self._db.all(*and_(members, some)))
        return frozenset(row.id_key for row in rows if sort_key_of(row, self._sort)[0] == EMPTY_VALUE)

    def _filter_condition(self, column: str) -> SqlFragment | None:
        """A condition on a column of id keys: their members survive the filter; None if none does."""
        selection = self._selection
        if selection.state.is_unfiltered:
            return ALWAYS
        keys = selection.keys(selection.state, self._type, selection.low, selection.high)
        return keys.wrap(f"{column} IN ({{}})") if keys else None

    def _overriding_keys(self, after: PageKey | None, descending: bool) -> list[PageKey]:
        """The page keys of changed entities, from their images at the moment."""
        selection = self._selection
        if not selection.overrides:
            return []
        keys = selection.keys(selection.state, self._type, selection.low, selection.high)
        return self._sort_rows(selection.overriding_rows(self._type, keys), after, descending)

    def _omitted_page_keys(self, after: PageKey | None, descending: bool) -> list[PageKey]:
        """The page keys of entities that the index omits."""
        selection = self._selection
        if not selection.compiler.omitted.keys(self._type):
            return []
        keys = selection.keys(selection.state, self._type, selection.low, selection.high)
        return self._sort_rows(selection.compiler.omitted.rows(self._type, keys), after, descending) if keys else []

    def _sort_rows(self, rows: Iterable[EntityRow], after: PageKey | None, descending: bool) -> list[PageKey]:
        page_keys = (PageKey(*sort_key_of(row, self._sort)) for row in rows)
        remaining = (page_key for page_key in page_keys if _is_after(page_key, after, descending))
        return sorted(remaining, reverse=descending)

    @property
    def _sort_path(self) -> str:
        return path_key(path_text(self._sort.path))


_DIRECTION: Final = {False: "", True: " DESC"}


def _is_after(key: K, after: K | None, descending: bool) -> bool:
    return after is None or (key < after if descending else key > after)


def _with_limit(query: SqlFragment, limit: int | None) -> SqlFragment:
    return query if limit is None else SqlFragment(f"{query.text} LIMIT ?", (*query.values, limit))
