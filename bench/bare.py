"""The floor under every write: the rows that it leaves, inserted by hand and committed durably."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, inspect

from annals.commands.store.database import sql
from annals.commands.store.log import Store

#: Rows by table.
Rows = dict[str, list[tuple[Any, ...]]]


def rows_of(store: Store) -> Rows:
    """All rows of all tables of a store."""
    with store.engine.connect() as connection:
        names = sorted(inspect(connection).get_table_names())
        return {name: [tuple(row) for row in sql.run(connection, f'SELECT * FROM "{name}"')] for name in names}


def added(before: Rows, after: Rows) -> Rows:
    """The rows that are new."""
    new = {name: set(rows) - set(before.get(name, ())) for name, rows in after.items()}
    return {name: sorted(rows, key=repr) for name, rows in new.items() if rows}


def count(rows: Rows) -> int:
    """How many rows there are in all tables."""
    return sum(map(len, rows.values()))


def seconds_to_insert(store: Store, rows: Rows, transactions: int = 1) -> float:
    """The time that the rows take in tables without indexes or keys, in durable transactions of equal shares."""
    return _seconds(store, _bare_tables(store, rows), rows, transactions)


def _seconds(store: Store, targets: dict[str, Table], rows: Rows, transactions: int) -> float:
    shares = [{name: _share(some, turn, transactions) for name, some in rows.items()} for turn in range(transactions)]
    with store.engine.connect() as connection:
        began = time.perf_counter()
        for share in shares:
            with connection.begin():
                _insert(connection, targets, share)
        return time.perf_counter() - began


def _share(rows: list[tuple[Any, ...]], turn: int, turns: int) -> list[tuple[Any, ...]]:
    return rows[len(rows) * turn // turns : len(rows) * (turn + 1) // turns]


def _insert(connection: Connection, targets: dict[str, Table], rows: Rows) -> None:
    for name, some in rows.items():
        # One prepared statement with all rows, the fastest that each driver has: executemany on SQLite, arrays on
        # PostgreSQL, whose executemany is a round trip a row or a pipeline. The row that says how far a projection
        # has come is there already.
        sql.insert(connection, targets[name], some, "ON CONFLICT DO NOTHING")


def _bare_tables(store: Store, rows: Rows) -> dict[str, Table]:
    kept = MetaData()
    kept.reflect(store.engine, only=list(rows))
    bare = MetaData()
    tables = {
        name: Table(f"bare_{name}", bare, *(Column(column.name, column.type) for column in kept.tables[name].columns))
        for name in rows
    }
    bare.drop_all(store.engine)
    bare.create_all(store.engine)
    return tables
