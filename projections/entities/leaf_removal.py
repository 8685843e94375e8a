"""Removes the leaves of many deleted entities with one statement for each type.

The leaves of one entity are in many places of the attribute index. Removing them one by one means computing them from
the entity's JSON and a search in the index for each. A deletion of whole collections removes a range of a type's id
keys. If the range is a good part of the type, it costs far less to go through the type's part of the index once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.entities.id_keys import id_key
from annals.projections.entities.leaves import UNINDEXED_TYPES
from annals.projections.entities.tables import ReadModelTables

#: The number of a type's entities, for each deleted one, up to which all leaves of the type are gone through. Going
#: past a leaf takes less than a twentieth of the time that it takes to remove one by its key.
MAX_ENTITIES_PER_DELETED: Final = 10

#: Id keys by type.
KeysByType = Mapping[str, Collection[str]]


def remove_ranges(db: Database, tables: ReadModelTables, events: Sequence[tuple[int, EntityEvent]]) -> KeysByType:
    """Removes leaves of entities that some events delete, before these are applied; returns their id keys.

    The index must have what was before the events. Nothing is removed of types where that would cost more.
    """
    # A range, because with a list of 10,000 keys, a deletion on PostgreSQL took minutes.
    statement = (
        f"DELETE FROM {tables.attribute.name} WHERE id_key >= ? AND id_key <= ?"
        f" AND path IN (SELECT number FROM {tables.path.name} WHERE type = ?)"
    )
    removed = {
        type: keys for type, keys in _deleted_keys(events).items() if _is_worthwhile(db, tables.entity.name, type, keys)
    }
    for type, keys in removed.items():
        db.run(statement, (min(keys), max(keys), type))
    return removed


def _deleted_keys(events: Sequence[tuple[int, EntityEvent]]) -> dict[str, set[str]]:
    """The id keys of entities, by type. A deletion is their only event, so no leaf of them is added in between."""
    deletions = [event for _, event in events if isinstance(event, EntityDeleted)]
    event_counts = Counter(xids.tree_key(event.xid) for _, event in events) if deletions else {}
    keys: dict[str, set[str]] = {}
    for event in deletions:
        key = xids.tree_key(event.xid)
        if event_counts[key] == 1 and event.type not in UNINDEXED_TYPES:
            keys.setdefault(event.type, set()).add(id_key(key))
    return keys


def _is_worthwhile(db: Database, table: str, type: str, deleted: Collection[str]) -> bool:
    """Whether no other entity of the type is between the deleted ones, and these are a good part of the type.

    Cost: O(deleted).
    """
    entities, limit = f"FROM {table} WHERE type = ?", len(deleted) * MAX_ENTITIES_PER_DELETED
    in_range = f"SELECT id_key {entities} AND id_key >= ? AND id_key <= ? LIMIT ?"
    rows = db.all(in_range, (type, min(deleted), max(deleted), len(deleted) + 1))
    if any(key not in deleted for (key,) in rows):
        return False
    (count,) = db.one(f"SELECT count(*) FROM (SELECT 1 {entities} LIMIT ?) AS first", (type, limit + 1))
    return int(count) <= limit
