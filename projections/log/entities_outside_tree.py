"""Entities outside the registry's tree, such as links, API keys and grants, read from the log: now or at a position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.damage import report_once
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper, UnreadableEvent
from annals.domain.registry.entities import Entity
from annals.domain.registry.evolve import evolve
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database

_EVENT_COLUMNS: Final = ", ".join(f"l.{name}" for name in LogRow._fields)
_SELECT_LIVE: Final = f"SELECT {_EVENT_COLUMNS} FROM head h JOIN log l ON l.position = h.position WHERE h.live AND "
_SELECT_ONE: Final = _SELECT_LIVE + "h.tree_key = ?"
_SELECT_NEXT: Final = _SELECT_LIVE + "h.tree_key > ? AND h.tree_key < ? ORDER BY h.tree_key LIMIT ?"
_SELECT_PAST_ONE: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log l WHERE l.stream = ? AND l.position <= ? ORDER BY l.revision DESC LIMIT 1"
)
_SELECT_PAST: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log f JOIN log l ON l.stream = f.stream AND l.revision ="
    " (SELECT max(t.revision) FROM log t WHERE t.stream = f.stream AND t.position <= ?)"
    " WHERE f.stream > ? AND f.stream < ? AND f.revision = 1 AND f.position <= ? ORDER BY l.stream LIMIT ?"
)


#: The number of entities that one query reads.
_BATCH: Final = 1000
_SELECT_LAST_POSITION: Final = "SELECT max(position) FROM head WHERE tree_key >= ? AND tree_key < ?"


class EntitiesOutsideTree:
    """The live entities of one collection, such as `/-/keys`. position: the position to read at; None for now."""

    def __init__(self, db: Database, collection: str, position: int | None = None) -> None:
        self._db = db
        self._collection = collection
        self._position = position
        self._mapper = EventMapper()

    def get(self, id: str) -> Entity | None:
        """A live entity by its exact id. Uses one look-up. Raises: UnreadableEvent."""
        if "\0" in id:
            return None  # PostgreSQL refuses such text even in queries
        xid = f"{self._collection}/{id}"
        row = (
            self._db.one(_SELECT_ONE, (xids.tree_key(xid),))
            if self._position is None
            else self._db.one(_SELECT_PAST_ONE, (xids.stream(xid), self._position))
        )
        entity = self._entity(row) if row else None
        return entity if entity is not None and entity.xid == xid else None

    def all(self, after: str = "") -> Iterator[Entity]:
        """The live entities, by lower-cased id; one whose event is damaged is reported and skipped.

        after: the id behind which they begin. They are read in parts, so a caller that takes a few costs little.
        """
        rows: list[Any] = []
        last = f"{self._collection}/{after.lower()}"
        while not rows or len(rows) == _BATCH:
            rows = self._rows(last)
            if not rows:
                return
            yield from self._readable(rows)
            _, last, *_ = rows[-1]

    def _readable(self, rows: list[Any]) -> Iterator[Entity]:
        for row in rows:
            try:
                entity = self._entity(row)
            except (UnreadableEvent, KeyError, TypeError) as error:
                # One damaged entity must not hide the others.
                report_once(f"the entity at position {row[0]} is ignored: {error}")
                continue
            if entity is not None:
                yield entity

    def last_position(self) -> int:
        """The position of the newest event of any entity of the collection, also of a deletion; 0 if there is none."""
        return int(self._db.one(_SELECT_LAST_POSITION, xids.subtree(self._collection))[0] or 0)

    def _rows(self, last: str) -> list[Any]:
        """The events of the next entities behind a stream."""
        if self._position is None:
            _, end = xids.subtree(self._collection)
            return self._db.all(_SELECT_NEXT, (xids.tree_key(last), end, _BATCH))
        end = f"{self._collection}0"  # "0" follows "/"
        return self._db.all(_SELECT_PAST, (self._position, last, end, self._position, _BATCH))

    def _entity(self, row: Sequence[Any]) -> Entity | None:
        position, stream, revision, topic, state = row
        event = self._mapper.event_of_row(LogRow(position, stream, revision, topic, decompress_state(state)))
        return evolve(event, position)
