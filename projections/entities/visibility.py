"""Which entities a caller with roles in some Groups only may see, as conditions of SQL and as a function.

A place of the caller is a range of keys: a Group and all below it, or all Groups whose ids begin with a text. Only
patterns with a wildcard at another place need a look at each key. Rules ACC-71, ACC-72.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from annals.domain.access.places import MAX_PLACES, WILDCARD, is_pattern, matches
from annals.domain.access.roles import Caller, group_of
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import NEVER, SqlFragment, and_, between, in_list, or_
from annals.projections.entities.filters.value_conditions import like_pattern
from annals.projections.entities.id_keys import AFTER_SUBTREE, group_key_expression, owner_expression
from annals.projections.entities.rows import EntityRow

#: Sorts above all characters of ids, and above what separates them.
_LAST: Final = "\x7f"
#: The entities above the Groups. The registry's attributes can be read, but not its history, because it changes with
#: each Group that comes or goes.
_ROOT_KEYS: Final = frozenset(map(xids.tree_key, xids.ROOT_STREAMS))
#: What can be read in full, with its history (ACC-73).
_DEFINITION_KEYS: Final = tuple(map(xids.tree_key, (xids.CAPABILITIES, xids.MODEL)))
#: The condition that excludes the streams outside the registry's tree; `0` follows `/`.
_IN_TREE: Final = " AND ".join(f"NOT ({{0}} >= '{start}' AND {{0}} < '{start[:-1]}0')" for start in xids.OUTSIDE_TREE)


@dataclass(frozen=True)
class Visibility:
    """What is visible at some places. places: see `annals.domain.access.places`; None for everything."""

    places: frozenset[str] | None = None

    @classmethod
    def of_caller(cls, caller: Caller) -> Visibility:
        """What a caller sees."""
        return EVERYTHING if caller.places is None else cls(frozenset(caller.places))

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

    def sees_stream(self, stream: str) -> bool:
        """Whether the events of a stream of the log are visible, for a caller that is no admin."""
        is_hidden = xids.is_outside_tree(stream) or (self.places is not None and stream == xids.REGISTRY)
        return not is_hidden and self.sees_key(xids.tree_key(stream))

    def among(self, rows: Iterable[EntityRow]) -> Iterator[EntityRow]:
        """The visible ones of some rows."""
        return iter(rows) if self.places is None else (row for row in rows if self.sees_key(row.tree_key))

    def id_keys(self, db: Database, column: str, type: str, low: str, high: str) -> SqlFragment:
        """The condition that a column of id keys of a type is between two of them, exclusive, and visible."""
        if self.places is None or type in xids.ROOT_STREAMS:
            return between(column, low, high)
        plural = type.partition(".")[0]
        ids = (id for name, id in self._split_places if matches(name, plural))
        return _in_places(db, column, owner_expression(db, column, type, 1), ids, low, high, AFTER_SUBTREE)

    def tree_keys(self, db: Database, column: str, low: str, high: str) -> SqlFragment:
        """The condition that a column of tree keys is between two of them, exclusive, and visible in a Group.

        What is above the Groups is looked up by its key.
        """
        if self.places is None:
            return between(column, low, high)
        keys = (f"!{name}!{id}" for name, id in self._split_places)
        return _in_places(db, column, group_key_expression(db, column), keys, low, high, '"')

    def history_keys(self, db: Database, column: str, low: str, high: str) -> SqlFragment:
        """The condition that a column of tree keys is from one (inclusive) to another, and its history is visible."""
        bounds = SqlFragment(f"{column} >= ? AND {column} < ?", (low, high))
        visible = self.tree_keys(db, column, *ALL_KEYS).wrap("({})")
        return and_(bounds, or_([visible, in_list(db, column, _DEFINITION_KEYS)]))

    def streams(self, db: Database, column: str, xid: str) -> SqlFragment:
        """The condition that a column of streams is of visible entities in Groups, below the registry or a collection.

        The range of streams is there for the index: some ids sort between a Group's stream and those of its members.
        """
        keys = self.tree_keys(db, f"replace({column}, '/', '!')", *xids.subtree(xid)).wrap("({})")
        starts = [place.partition(WILDCARD)[0] for place in self.places or ("/",)] or ["/"]
        bounds = SqlFragment(f"{column} >= ? AND {column} < ?", (min(starts), max(start + _LAST for start in starts)))
        return and_(bounds, keys, SqlFragment(_IN_TREE.format(column)))

    @property
    def _split_places(self) -> list[tuple[str, str]]:
        """The name of the collection and the id of each place."""
        return [(name, id) for _, name, id in (place.split("/") for place in sorted(self.places or ()))]

    @cached_property
    def _patterns(self) -> list[str]:
        return [place for place in self.places or () if is_pattern(place)]


#: The bounds of all tree keys, exclusive.
ALL_KEYS: Final = ("", _LAST)
#: What one may see who has a role at the registry.
EVERYTHING: Final = Visibility()


class _PlaceKeys(NamedTuple):
    """The keys at a place, from one (inclusive) to another (exclusive).

    pattern: of LIKE, for the keys of Groups where the range has others too; None where it has none.
    """

    low: str
    high: str
    pattern: str | None


def _in_places(
    db: Database, column: str, group: str, keys: Iterable[str], low: str, high: str, after_subtree: str
) -> SqlFragment:
    """The condition that a key between two others is at a place. group: SQL for the key of its Group.

    keys: of Groups, maybe with wildcards. after_subtree: what sorts above a Group's subtree behind its key.
    """
    found = ((key, _keys_at(key, after_subtree)) for key in keys)
    places = {key: place for key, place in found if place.low < high and place.high > low}
    if not places:
        return NEVER
    start = max(low, min(place.low for place in places.values()))
    end = min(high, max(place.high for place in places.values()))
    # `low` is exclusive; where a place begins is the key of a Group, which belongs to the place.
    bounds = SqlFragment(f"{column} {'>' if start == low else '>='} ? AND {column} < ?", (start, end))
    if len(places) == 1:
        return and_(bounds, *_pattern_condition(group, *places.values()))
    if len(places) <= MAX_PLACES:
        return and_(bounds, or_(_place_condition(column, group, place) for place in places.values()))
    # SQLite plans a look-up for each place, in a time that grows with their square. So the Group of each row is looked
    # up among those without a wildcard, and compared with the others.
    named_groups = [key for key in places if WILDCARD not in key]
    patterns = [place for key, place in places.items() if WILDCARD in key]
    compared = (_place_condition(f"({column} || '')", group, place) for place in patterns)
    return and_(bounds, or_([in_list(db, group, named_groups), *compared]))


def _keys_at(key: str, after_subtree: str) -> _PlaceKeys:
    beginning, *others = key.split(WILDCARD)
    pattern = None if others in ([], [""]) else like_pattern([beginning, *others])
    return _PlaceKeys(beginning, beginning + (_LAST if others else after_subtree), pattern)


def _place_condition(column: str, group: str, place: _PlaceKeys) -> SqlFragment:
    keys = SqlFragment(f"{column} >= ? AND {column} < ?", (place.low, place.high))
    return and_(keys, *_pattern_condition(group, place)).wrap("({})")


def _pattern_condition(group: str, place: _PlaceKeys) -> list[SqlFragment]:
    return [] if place.pattern is None else [SqlFragment(f"{group} LIKE ? ESCAPE '\\'", (place.pattern,))]
