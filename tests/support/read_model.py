"""The rows of a read model, for comparisons with another one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from annals.projections.entities.rows import ROW_COLUMNS, stored_row
from annals.projections.entities.tables import tables

_ROW_WIDTH = len(ROW_COLUMNS)


def read_model_rows(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The rows by table, sorted, with readable attributes.

    Leaves have the type and the path instead of the number of the path, which may differ.
    """
    own = tables()
    leaves = (
        select(own.path.c.type, own.path.c.path, own.attribute.c.value, own.attribute.c.id_key)
        .select_from(own.attribute)
        .outerjoin(own.path, own.path.c.number == own.attribute.c.path)
    )
    queries = {table.name: select(table) for table in tables() if table not in (own.attribute, own.path)}
    rows = {
        name: list(map(tuple, connection.execute(query)))
        for name, query in (queries | {own.attribute.name: leaves}).items()
    }
    for name in (own.entity.name, own.history.name):
        rows[name] = [(*stored_row(row[:_ROW_WIDTH]), *row[_ROW_WIDTH:]) for row in rows[name]]
    return {name: sorted(rows[name], key=str) for name in rows}
