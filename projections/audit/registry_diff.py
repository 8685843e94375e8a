"""Compares two moments: the changes of each entity at or below a path.

Unchanged entities cost nothing, or one index key each: the query scans the events between the moments or the heads of
the subtree, whichever are fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annals.domain.values import xid as xids
from annals.domain.values.batched import batched
from annals.projections.audit.entity_diff import EntityDiff, diff_entity, unless_deleted
from annals.projections.audit.trail import BATCH, AuditTrail
from annals.projections.audit.tree_hashes import key_range_of
from annals.projections.audit.visible_entities import Condition, VisibleEntities, keys_condition
from annals.projections.database.drivers import Database

#: The positions of an entity's last event at each of the two moments.
LastPositions = tuple[int | None, int | None]

_LAST_POSITION: Final = "SELECT position FROM log WHERE stream = {} AND position <= ? ORDER BY revision DESC LIMIT 1"
_POSITIONS_OF_ENTITY: Final = f"SELECT ({_LAST_POSITION.format('?')}), ({_LAST_POSITION.format('?')})"
_STREAM_OF_HEAD: Final = "replace(h.tree_key, '!', '/')"
_LAST_POSITION_OF_HEAD: Final = f"({_LAST_POSITION.format(_STREAM_OF_HEAD)})"
BY_HEAD: Final = (
    f"SELECT {_LAST_POSITION_OF_HEAD}, {_LAST_POSITION_OF_HEAD} FROM head h"
    " WHERE {} AND h.position > ? ORDER BY h.tree_key"
)
_KEY: Final = "replace(stream, '/', '!')"
_POSITION_OF_REVISION: Final = "(SELECT position FROM log WHERE stream = m.stream AND revision = m.{})"
BY_LOG: Final = (
    f"SELECT {_POSITION_OF_REVISION.format('before')}, {_POSITION_OF_REVISION.format('after')} FROM ("
    f"SELECT stream, {_KEY} AS tree_key, min(revision) - 1 AS before, max(revision) AS after FROM log"
    " WHERE position > ? AND position <= ? AND {} GROUP BY stream"
    ") AS m ORDER BY m.tree_key"
)
_COUNT_HEADS: Final = "SELECT count(*) FROM (SELECT 1 FROM head h WHERE {} LIMIT ?) AS counted"


class RegistryDiff:
    """The difference between a registry at one position and at another, which may be an earlier one.

    visible: which entities it is about; None for all.
    """

    def __init__(self, db: Database, before: int, after: int, visible: VisibleEntities | None = None) -> None:
        self._db = db
        self._visible = visible
        self._trail = AuditTrail(db)
        self._low, self._high = min(before, after), max(before, after)
        self._backwards = before > after

    def entity_differences(self, xid: str) -> Iterator[EntityDiff]:
        """The changes of one entity; in between, its id may have had another spelling."""
        stream = xids.stream(xid)
        if self._visible is not None and not self._visible.sees_stream(stream):
            return iter(())
        positions = self._db.one(_POSITIONS_OF_ENTITY, (stream, self._low, stream, self._high))
        return self._differences(iter([tuple(positions)]))

    def tree_differences(self, xid: str) -> Iterator[EntityDiff]:
        """The changes of each entity at or below an entity or collection, in tree order, streamed."""
        distance, bounds = self._high - self._low, (self._low, self._high)
        if not distance:
            return iter(())
        keys, values = self._keys("h.tree_key", xid)
        if self._db.one(_COUNT_HEADS.format(keys), (*values, distance))[0] < distance:
            pairs = self._db.stream(BY_HEAD.replace("{}", keys), (*bounds, *values, self._low))
        else:
            keys, values = self._keys(_KEY, xid)
            pairs = self._db.stream(BY_LOG.replace("{}", keys), (*bounds, *values))
        return self._differences(map(tuple, pairs))

    def _keys(self, column: str, xid: str) -> Condition:
        return keys_condition(self._visible, self._db, column, *key_range_of(xid))

    def _differences(self, position_pairs: Iterator[LastPositions]) -> Iterator[EntityDiff]:
        changed_pairs = (pair for pair in position_pairs if pair[0] != pair[1])
        for batch in batched(changed_pairs, BATCH):
            events = self._trail.events_at([position for pair in batch for position in pair if position is not None])
            for low, high in batch:
                before, after = (unless_deleted(events.get(last)) if last is not None else None for last in (low, high))
                yield from diff_entity(*((after, before) if self._backwards else (before, after)))
