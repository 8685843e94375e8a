"""Pages over the members of one collection, sorted, starting at any member.

A page key is what sorts a member: the class, number and text of its sort key (for a number its remainder), and its tree
key. A page starts after such a key, so members that are added or removed elsewhere do not shift it. Sorted by id, a
page is a range of keys. Sorted by an attribute, it is a range of the attribute's index: first members without a value,
then numbers, then texts, or the reverse.
Spec: core 1.0-rc4, "Sort Flag"; Pagination 0.1.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from annals.domain.filters import Sort
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import sort_key_of
from annals.projections.entities.filters.missing_attributes import (
    MAX_KEYS,
    MissingAttributeCache,
    MissingAttributeQuery,
    TreeKeys,
)
from annals.projections.entities.filters.selection import Selection
from annals.projections.entities.filters.sql import SqlFragment, and_, between
from annals.projections.entities.leaves import path_key, path_text
from annals.projections.entities.rows import EntityRow

#: Up to this size, a collection's members are sorted; for a larger one, the index over all entities of its type is read
#: in order.
MAX_SORTED: Final = 5000

BY_ID: Final = Sort(())


class PageKey(NamedTuple):
    """The sort position of a member."""

    key: tuple[int, float, str]
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
        return self._by_value(after, descending, limit)

    def _by_id(self, low: str, high: str, descending: bool, limit: int | None) -> Iterator[PageKey]:
        query = self._selection.keys(self._selection.state, self._type, low, high)
        if query is None:
            return
        ordered_query = query.wrap(f"SELECT s.key FROM ({{}}) AS s ORDER BY s.key{_DIRECTION[descending]}")
        for (key,) in self._db.stream(*_with_limit(ordered_query, limit)):
            yield PageKey((0, 0.0, ""), key)

    def _by_value(self, after: PageKey | None, descending: bool, limit: int | None) -> Iterator[PageKey]:
        classes = (_MISSING, _NUMBERS, _TEXTS)
        sort_classes = [
            sort_class
            for sort_class in (reversed(classes) if descending else classes)
            if _can_follow(sort_class, after, descending)
        ]
        current = chain.from_iterable(
            self._class_keys(sort_class, after, descending, limit) for sort_class in sort_classes
        )
        other_sources = [
            source
            for source in (self._overriding_keys(after, descending), self._omitted_page_keys(after, descending))
            if source
        ]
        return heapq.merge(current, *other_sources, reverse=descending) if other_sources else current

    def _class_keys(
        self, sort_class: int, after: PageKey | None, descending: bool, limit: int | None
    ) -> Iterator[PageKey]:
        start = after if after and after.key[0] == sort_class else None
        if sort_class == _MISSING:
            yield from (
                PageKey((sort_class, 0.0, ""), key) for key in self._keys_without_value(start, descending, limit)
            )
            return
        query = self._with_value_query(sort_class, start, descending)
        for *value, key in self._db.stream(*_with_limit(query, limit)) if query else ():
            yield PageKey(
                (sort_class, value[0], value[1]) if sort_class == _NUMBERS else (sort_class, 0.0, value[0]), key
            )

    def _keys_without_value(self, after: PageKey | None, descending: bool, limit: int | None) -> Iterator[str]:
        """Tree keys of the members without the attribute."""
        missing_keys = self._cached_missing_keys()
        if missing_keys is None:
            query = self._without_value_query(after, descending)
            yield from (key for (key,) in self._db.stream(*_with_limit(query, limit))) if query else ()
            return
        ordered_keys = reversed(missing_keys) if descending else missing_keys
        yield from (
            key
            for key in ordered_keys
            if after is None or (key < after.tree_key if descending else key > after.tree_key)
        )

    def _with_value_query(self, sort_class: int, after: PageKey | None, descending: bool) -> SqlFragment | None:
        columns, filtered = (
            [f"a.{column}" for column in (*_COLUMNS[sort_class][0], "tree_key")],
            self._filter_condition("a.tree_key"),
        )
        if filtered is None:
            return None
        conditions = [
            self._values_query(sort_class),
            filtered,
            self._selection.compiler.unchanged_condition("a.tree_key"),
        ]
        if after:
            values, sign = after.key[1 if sort_class == _NUMBERS else 2 :], "<" if descending else ">"
            # The first condition is the start of the index scan; the second is the exact condition.
            conditions.append(SqlFragment(f"{columns[0]} {sign}= ?", values[:1]))
            placeholders = ", ".join("?" for _ in columns)
            conditions.append(SqlFragment(f"({', '.join(columns)}) {sign} ({placeholders})", (*values, after.tree_key)))
        order = ", ".join(f"{column}{_DIRECTION[descending]}" for column in columns)
        return and_(*conditions).wrap(f"{{}} ORDER BY {order}")

    def _without_value_query(self, after: PageKey | None, descending: bool) -> SqlFragment | None:
        low, high = self._selection.low, self._selection.high
        if after:
            low, high = (low, after.tree_key) if descending else (after.tree_key, high)
        keys = self._filter_condition("e.tree_key")
        if keys is None:
            return None
        select = SqlFragment(f"SELECT e.tree_key FROM entity AS e WHERE e.type = '{self._type}'")
        # Counted, because PostgreSQL turns NOT EXISTS into a join, which is slow while it lacks statistics.
        has_no_value = SqlFragment(
            f"(SELECT count(*) FROM attribute AS a WHERE {_VALUE_OF_ENTITY}) = 0", (self._sort_path,)
        )
        index = self._selection.compiler
        is_current = and_(
            index.unchanged_condition("e.tree_key"), index.omitted.not_omitted_condition("e.tree_key", self._type)
        )
        query = and_(select, between("e.tree_key", low, high), has_no_value, keys, is_current)
        return query.wrap(f"{{}} ORDER BY e.tree_key{_DIRECTION[descending]}")

    def _cached_missing_keys(self) -> list[str] | None:
        """The tree keys of a large collection's members without the attribute; None if too many or unknown."""
        selection = self._selection
        if self._size <= MAX_SORTED or not selection.state.is_unfiltered:
            return None
        if selection.overrides.images and not selection.overrides.is_newer_only:
            return None
        query = MissingAttributeQuery(self._type, self._sort_path, selection.low, selection.high)
        keys = self._missing_attributes.members_without(
            self._db, query, self._find_missing_keys, self._filter_missing_keys
        )
        return None if keys is None else [key for key in keys if key not in selection.overrides.images]

    def _find_missing_keys(self) -> TreeKeys | None:
        # Counting the values is cheaper than searching for members without one.
        select = SqlFragment(
            f"SELECT 1 FROM attribute AS a WHERE a.type = '{self._type}' AND a.path = ?", (self._sort_path,)
        )
        key_range = between("a.tree_key", self._selection.low, self._selection.high)
        is_current = self._selection.compiler.unchanged_condition("a.tree_key")
        queries = (and_(select, key_range, SqlFragment(condition), is_current) for _, condition in _COLUMNS.values())
        counts = (self._db.one(*query.wrap("SELECT count(*) FROM ({}) AS s"))[0] for query in queries)
        omitted_count = len(self._selection.compiler.omitted.keys(self._type))
        changed_count = len(self._selection.overrides.keys_of_type(self._type))
        missing_count = self._size - sum(counts) - omitted_count - changed_count
        if missing_count == 0:
            return frozenset()
        query = self._without_value_query(None, descending=False) if 0 < missing_count <= MAX_KEYS else None
        return frozenset(key for (key,) in self._db.all(*query)) if query else None

    def _filter_missing_keys(self, keys: Sequence[str]) -> TreeKeys:
        query = self._without_value_query(None, descending=False)
        assert query is not None, "nothing is filtered"
        key_query = query.wrap(f"SELECT s.tree_key FROM ({{}}) AS s WHERE {self._db.in_list('s.tree_key')}")
        return frozenset(
            key for (key,) in self._db.all(key_query.text, (*key_query.values, self._db.list_parameter(keys)))
        )

    def _values_query(self, sort_class: int) -> SqlFragment:
        """The values of a class with the keys of their members."""
        columns, condition = _COLUMNS[sort_class]
        selection = self._selection
        column_list = ", ".join(f"a.{column}" for column in columns)
        if self._size > MAX_SORTED:
            select = (
                f"SELECT {column_list}, a.tree_key FROM attribute AS a WHERE a.type = '{self._type}' AND a.path = ?"
            )
            return and_(
                SqlFragment(select, (self._sort_path,)),
                SqlFragment(condition),
                between("a.tree_key", selection.low, selection.high),
            )
        # Looks up a value for each member. With a join, the database would choose a plan by its statistics, and there
        # are none while the tables are new.
        value = f"FROM attribute AS a WHERE a.tree_key = e.tree_key AND a.path = ? AND {condition}"
        value_lookups = ", ".join(f"(SELECT a.{column} {value}) AS {column}" for column in columns)
        members = and_(
            SqlFragment(
                f"SELECT {value_lookups}, e.tree_key FROM entity AS e WHERE e.type = '{self._type}'",
                tuple(self._sort_path for _ in columns),
            ),
            between("e.tree_key", selection.low, selection.high),
        )
        return members.wrap(f"SELECT {column_list}, a.tree_key FROM ({{}}) AS a WHERE a.{columns[0]} IS NOT NULL")

    def _filter_condition(self, column: str) -> SqlFragment | None:
        """A condition for the members that survive the filter; None if none does."""
        selection = self._selection
        if selection.state.is_unfiltered:
            return SqlFragment("1 = 1")
        keys = selection.keys(selection.state, self._type, selection.low, selection.high)
        return keys.wrap(f"{column} IN ({{}})") if keys else None

    def _overriding_keys(self, after: PageKey | None, descending: bool) -> list[PageKey]:
        """The page keys of changed entities, from their images at the moment."""
        selection = self._selection
        if not selection.overrides.images:
            return []
        rows = selection.overriding_rows(selection.keys(selection.state, self._type, selection.low, selection.high))
        return self._sort_rows(rows, after, descending)

    def _omitted_page_keys(self, after: PageKey | None, descending: bool) -> list[PageKey]:
        """The page keys of entities that the index omits."""
        selection = self._selection
        if not selection.compiler.omitted.keys(self._type):
            return []
        keys = selection.keys(selection.state, self._type, selection.low, selection.high)
        return self._sort_rows(selection.compiler.omitted.rows(self._type, keys), after, descending) if keys else []

    def _sort_rows(self, rows: Iterable[EntityRow], after: PageKey | None, descending: bool) -> list[PageKey]:
        page_keys = (PageKey(*sort_key_of(row, self._sort)) for row in rows)
        remaining = (
            page_key
            for page_key in page_keys
            if after is None or (page_key < after if descending else page_key > after)
        )
        return sorted(remaining, reverse=descending)

    @property
    def _sort_path(self) -> str:
        return path_key(path_text(self._sort.path))


_MISSING: Final = 0
_NUMBERS: Final = 1
_TEXTS: Final = 2
_COLUMNS: Final = {
    _NUMBERS: (("number", "remainder"), "a.text IS NULL AND a.number IS NOT NULL"),
    _TEXTS: (("text",), "a.text IS NOT NULL"),
}
_DIRECTION: Final = {False: "", True: " DESC"}
_VALUE_OF_ENTITY: Final = "a.tree_key = e.tree_key AND a.path = ? AND (a.text IS NOT NULL OR a.number IS NOT NULL)"


def _can_follow(sort_class: int, after: PageKey | None, descending: bool) -> bool:
    """Whether members of a class may come after a page key."""
    return after is None or (sort_class <= after.key[0] if descending else sort_class >= after.key[0])


def _with_limit(query: SqlFragment, limit: int | None) -> SqlFragment:
    return query if limit is None else SqlFragment(f"{query.text} LIMIT ?", (*query.values, limit))
