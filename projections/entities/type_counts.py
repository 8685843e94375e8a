"""Caches how many entities of each type the registry has, and updates the numbers from the log.

Counting reads a row of an index for each entity. The process caches the numbers, and later reads only what has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final, NamedTuple

from annals.commands.store.database import sql
from annals.projections.database.drivers import Database
from annals.projections.entities.changed_rows import changed_keys, rows_as_of

#: After this number of events, all are counted again.
MAX_NEW_EVENTS: Final = 1000

TypeCounts = Mapping[str, int]


class _CachedCounts(NamedTuple):
    position: int
    counts: TypeCounts


class TypeCountCache:
    """The cache of one process. Thread-safe."""

    def __init__(self) -> None:
        self._cached: _CachedCounts | None = None
        self._lock = Lock()

    def counts(self, db: Database, position: int, count_all: Callable[[], TypeCounts]) -> TypeCounts:
        """The numbers of entities by type. db: sees one snapshot, whose position is given."""
        with self._lock:
            cached = self._cached
        if cached is None or not 0 <= position - cached.position <= MAX_NEW_EVENTS:
            counts = count_all()
        elif cached.position == position:
            return cached.counts
        else:
            counts = _updated(db, cached, position)
        with self._lock:
            if self._cached is None or self._cached.position < position:
                self._cached = _CachedCounts(position, counts)
        return counts


def _updated(db: Database, cached: _CachedCounts, position: int) -> TypeCounts:
    counts = Counter(cached.counts)
    for keys in sql.chunks(changed_keys(db, cached.position, position)):
        counts.subtract(row.type for row in rows_as_of(db, keys, cached.position).values())
        counts.update(row.type for row in rows_as_of(db, keys, None).values())
    return {type: counts[type] for type in sorted(counts) if counts[type] and not type.startswith("/")}
