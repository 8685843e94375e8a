"""The entities that events after a position changed, with their rows of another moment."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row
from annals.projections.entities.tables import ReadModelTables, tables

_SELECT_STREAMS: Final = "SELECT DISTINCT stream FROM log WHERE position > ? AND position <= ?"
_COLUMNS: Final = ", ".join(ROW_COLUMNS)


def changed_keys(db: Database, after: int, until: int) -> list[str]:
    """The tree keys of the entities with events after a position, up to another, in order. Cost: O(these events)."""
    streams = (stream for (stream,) in db.all(_SELECT_STREAMS, (after, until)))
    return sorted(stream.replace("/", "!") for stream in streams if not xids.is_outside_tree(stream))


def rows_as_of(
    db: Database, keys: Collection[str], position: int | None, source: ReadModelTables | None = None
) -> dict[str, EntityRow]:
    """The rows of some entities as of a position, by tree key; None for now."""
    source = source or tables()
    condition, parameter = db.in_list("tree_key"), db.list_parameter(keys)
    current = f"SELECT {_COLUMNS} FROM {source.entity.name} WHERE {condition}"
    if position is None:
        rows = db.all(current, (parameter,))
    else:
        past = f"SELECT {_COLUMNS} FROM {source.history.name} WHERE {condition} AND since <= ? AND until > ?"
        values = (parameter, position, parameter, position, position)
        rows = db.all(f"{current} AND since <= ? UNION ALL {past}", values)
    return {values[0]: stored_row(values) for values in rows}


def next_rows(db: Database, after: str, limit: int, source: ReadModelTables) -> Iterator[EntityRow]:
    """The current rows that follow a tree key, in its order."""
    statement = f"SELECT {_COLUMNS} FROM {source.entity.name} WHERE tree_key > ? ORDER BY tree_key LIMIT ?"
    return map(stored_row, db.all(statement, (after, limit)))
