"""Which entities a caller with roles in some Groups only may see, as conditions of SQL and as a function.

A place of the caller is a range of keys: a Group and all below it, or all Groups whose ids begin with a text. Only
patterns with a wildcard at another place need a look at each key. Rules ACC-71, ACC-72.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from annals.domain.access.places import WILDCARD, is_pattern, matches
from annals.domain.access.roles import Caller, group_of
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import NEVER, SqlFragment, and_, between, or_
from annals.projections.entities.filters.value_conditions import like_pattern
from annals.projections.entities.id_keys import AFTER_SUBTREE, group_key_expression, owner_expression
from annals.projections.entities.rows import EntityRow

#: Sorts above all characters of ids, and above what separates them.
_LAST: Final = "\x7f"
#: The entities above the Groups. Their attributes can be read, but not their history, because the registry changes with
#: each Group that comes or goes.
_ROOT_KEYS: Final = tuple(sorted(map(xids.tree_key, xids.ROOT_STREAMS)))


@dataclass(frozen=True)
class Visibility:
    """What is visible at some places. places: see `annals.domain.access.places`; None for everything."""

    places: frozenset[str] | None = None

    @classmethod
    def of_caller(cls, caller: Caller) -> Visibility:
        """What a caller sees."""
        return EVERYTHING if caller.role is not None else cls(frozenset(caller.groups))

    def within(self, xid: str) -> Visibility:
        """The same for entities at and below an xid or collection: everything inside a Group that is visible."""
        group = group_of(xid)
        return EVERYTHING if group and self.sees_group(group) else self

    def sees_group(self, group: str) -> bool:
        """Whether a Group is visible. group: its lower-cased xid."""
        return self.places is None or group in self.places or any(matches(place, group) for place in self._patterns)

    def sees_key(self, tree_key: str) -> bool:
        """Whether the entity with a tree key is visible."""
        return self.places is None or tree_key in _ROOT_KEYS or self.sees_group("/".join(tree_key.split("!")[:3]))

    def among(self, rows: Iterable[EntityRow]) -> Iterator[EntityRow]:
        """The visible ones of some rows."""
        return iter(rows) if self.places is None else (row for row in rows if self.sees_key(row.tree_key))

    def id_keys(self, db: Database, column: str, type: str, low: str, high: str) -> SqlFragment:
        """The condition that a column of id keys of a type is between two of them, exclusive, and visible."""
        if self.places is None or type in xids.ROOT_STREAMS:
            return between(column, low, high)
        plural = type.partition(".")[0]
        ids = (id for name, id in self._split_places if matches(name, plural))
        group = owner_expression(db, column, type, 1)
        return _any_of(_in_place(column, group, id, low, high, AFTER_SUBTREE) for id in ids)

    def tree_keys(self, db: Database, column: str, low: str, high: str) -> SqlFragment:
        """The condition that a column of tree keys is between two of them, exclusive, and visible."""
        if self.places is None:
            return between(column, low, high)
        roots = (SqlFragment(f"{column} = ?", (key,)) for key in _ROOT_KEYS if low < key < high)
        group = group_key_expression(db, column)
        keys = (f"!{name}!{id}" for name, id in self._split_places)
        return _any_of(chain(roots, (_in_place(column, group, key, low, high, '"') for key in keys)))

    @property
    def _split_places(self) -> list[tuple[str, str]]:
        """The name of the collection and the id of each place."""
        return [(name, id) for _, name, id in (place.split("/") for place in sorted(self.places or ()))]

    @property
    def _patterns(self) -> list[str]:
        return [place for place in self.places or () if is_pattern(place)]


#: What one may see who has a role at the registry.
EVERYTHING: Final = Visibility()


def _in_place(column: str, group: str, place: str, low: str, high: str, after_subtree: str) -> SqlFragment | None:
    """The condition that a key between two others is at a place; None if none can be. group: SQL for its Group's key.

    place: the key of a Group, maybe with wildcards. after_subtree: what sorts above a Group's subtree behind its key.
    """
    beginning, *others = place.split(WILDCARD)
    end = beginning + (_LAST if others else after_subtree)
    if beginning >= high or end <= low:
        return None
    start = SqlFragment(f"{column} >= ?", (beginning,)) if beginning > low else SqlFragment(f"{column} > ?", (low,))
    condition = and_(start, SqlFragment(f"{column} < ?", (min(end, high),)))
    if others in ([], [""]):
        return condition
    return and_(condition, SqlFragment(f"{group} LIKE ? ESCAPE '\\'", (like_pattern([beginning, *others]),)))


def _any_of(conditions: Iterable[SqlFragment | None]) -> SqlFragment:
    found = [condition for condition in conditions if condition is not None]
    if len(found) == 1:
        return found[0]
    return or_([condition.wrap("({})") for condition in found]) if found else NEVER
