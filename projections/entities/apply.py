"""The inline projection: events into the read model, in the transaction that appends them.

For each stream the rows before, between and after its events are lined up; each but the last goes to the history, the
last one stays. What is new in whole is written without looking.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from domain import jsontext
from domain import xid as xids
from domain.compat.published import Image, Publication, follow, matters
from domain.events import EntityCreated, EntityDeleted, EntityEvent
from projections import database
from projections.database import Database, Values
from projections.entities.leaves import MOST, OMITTED, PRESENT, UNINDEXED, Leaf, leaves
from projections.entities.published import kept_of
from projections.entities.rows import Row, published_row, row, stored_row
from projections.entities.tables import Tables, tables
from projections.positions import forget, move

Recorded = Sequence[tuple[int, EntityEvent]]

#: How many events become rows together: enough for bulk statements, few enough that an import's leaves fit in memory.
TOGETHER: Final = 2000


class Entities:
    """The REST read model. name: of its position; into: the set of tables that it writes.

    most: leaves that the index takes of one entity. Tables may hold entities that were written under other bounds.
    """

    name = "entities"

    def __init__(self, name: str = name, into: Tables | None = None, most: int = MOST) -> None:
        self._position = name
        self._most = most
        self._tables = into or tables()

    def create(self, connection: Connection) -> None:
        """Makes the tables unless all are there as they should be; new ones have taken in nothing of the log."""
        if not self._tables.exist(connection):
            self._tables.metadata.drop_all(connection)
            self._tables.create(connection)
            forget(database.over(connection), self._position)

    def apply(self, connection: Connection, recorded: Recorded) -> None:
        """Takes in the events of whole interactions, in log order; what is apart from the tree has no rows."""
        if not recorded:
            return
        db = database.over(connection)
        inside = [each for each in recorded if not xids.is_apart(each[1].xid)]
        for start in range(0, len(inside), TOGETHER):
            self._apply(db, inside[start : start + TOGETHER])
        move(db, self._position, recorded[-1][0])

    def _apply(self, db: Database, recorded: Recorded) -> None:
        before, omitted = self._before(db, recorded)
        work, streams = Work(omitted, self._most), _by_stream(recorded)
        for key, events in streams.items():
            work.add(before.get(key), events)
        published = {key: events for key, events in streams.items() if any(matters(event) for _, event in events)}
        if published:
            # What is not there and had an event before is a Version that was kept, or one that is gone for good.
            dead = [key for key, events in published.items() if key not in before and events[0][1].revision > 1]
            kept = kept_of(db, self._tables.published.name, dead)
            for key, events in published.items():
                work.publish(before.get(key), kept.get(key), events)
        self._write(db, work)

    def _before(self, db: Database, recorded: Recorded) -> tuple[dict[str, Row], frozenset[str]]:
        """The rows that are there, by key, and the keys of those that the index omits."""
        known: set[str] = set()
        asked: list[str] = []
        for _, event in recorded:
            if event.stream not in known and not isinstance(event, EntityCreated):
                asked.append(xids.tree_key(event.xid))
            known.add(event.stream)
        if not asked:
            return {}, frozenset()
        own = self._tables
        omitted = f"EXISTS (SELECT 1 FROM {own.attribute.name} AS a WHERE a.tree_key = e.tree_key AND a.path = ?)"
        named = f"SELECT e.*, {omitted} FROM {own.entity.name} AS e WHERE {db.named('e.tree_key')}"
        found = db.all(named, [OMITTED, db.listed(asked)])
        rows = {values[0]: stored_row(values[:-1]) for values in found}
        return rows, frozenset(values[0] for values in found if values[-1])

    def _write(self, db: Database, work: Work) -> None:
        own = self._tables
        for write, table, rows in (
            (db.insert, own.history, work.replaced),
            (db.delete, own.attribute, work.lost_leaves),
            (db.delete, own.entity, work.gone),
            (db.insert, own.entity, work.born),
            (db.upsert, own.entity, work.moved),
            (db.insert, own.attribute, work.first_leaves),
            (db.upsert, own.attribute, work.moved_leaves),
            (db.upsert, own.published, work.published),
        ):
            if rows:
                write(table, rows)


class Work:
    """The rows that a run of events comes to, by what is to be done with them.

    omitted: keys of entities that the index omits. most: leaves that it takes of one entity.
    """

    def __init__(self, omitted: Collection[str], most: int) -> None:
        self._omitted = omitted
        self._most = most
        self.born: list[Values] = []
        self.moved: list[Values] = []
        self.gone: list[Values] = []
        self.replaced: list[Values] = []
        self.first_leaves: list[Values] = []
        self.moved_leaves: list[Values] = []
        self.lost_leaves: list[Values] = []
        self.published: list[Values] = []

    def add(self, before: Row | None, events: Recorded) -> None:
        """Adds the events of one stream. before: the row that is there."""
        images = [before, *(None if isinstance(event, EntityDeleted) else row(event, at) for at, event in events)]
        ends = [position for position, _ in events]
        self.replaced += [(*old, until) for old, until in zip(images, ends, strict=False) if old]
        after, last = images[-1], events[-1][1]
        if before is None and after is not None:
            self.born.append(after)
            self.first_leaves += _rows(after, self._leaves(last))
        elif before is not None and after is not None:
            self.moved.append(after)
            self._add_changes(after, self._stored_leaves(before), self._leaves(last))
        elif before is not None:
            self.gone.append((before.tree_key,))
            self.lost_leaves += [(before.tree_key, path) for path in self._stored_leaves(before)]

    def publish(self, before: Row | None, kept: Publication | None, events: Recorded) -> None:
        """Adds what the events of a Version's stream come to for the older APIs. kept: what is kept of it."""
        living = Image(before.since, jsontext.loads_own(before.private), before.born) if before else None
        self.published += map(published_row, follow(events, living, kept))

    def _add_changes(self, after: Row, old: dict[str, Leaf], new: dict[str, Leaf]) -> None:
        self.lost_leaves += [(after.tree_key, path) for path in old if path not in new]
        self.moved_leaves += _rows(after, {path: leaf for path, leaf in new.items() if old.get(path) != leaf})

    def _leaves(self, event: EntityEvent) -> dict[str, Leaf]:
        return {} if event.type in UNINDEXED else leaves(event.attributes, self._most)

    def _stored_leaves(self, old: Row) -> dict[str, Leaf]:
        if old.tree_key in self._omitted:
            return {OMITTED: PRESENT}
        return {} if old.type in UNINDEXED else leaves(jsontext.loads_own(old.attributes))


def _by_stream(recorded: Recorded) -> dict[str, list[tuple[int, EntityEvent]]]:
    streams: dict[str, list[tuple[int, EntityEvent]]] = {}
    for position, event in recorded:
        streams.setdefault(xids.tree_key(event.xid), []).append((position, event))
    return streams


def _rows(owner: Row, found: dict[str, Leaf]) -> list[Values]:
    # In the order of the primary key: SQLite appends to one page of the table, which saves a sixth of an import.
    key, type_ = owner.tree_key, owner.type
    return [(key, path, type_, *found[path]) for path in sorted(found)]
