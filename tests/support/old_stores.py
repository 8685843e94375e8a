"""Stores written by older releases: dumps of their SQLite files, and copies of these on PostgreSQL."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Connection, Table, make_url

from annals.commands.store.database import tables
from annals.commands.store.database.engine import open_engine
from tests.data import OURS

#: The schemas of which there is a store. Each has two imports: a model with two files of two kinds, then changes.
#: The stores of schemas 4 to 7 are the store of schema 3 after `annals upgrade --quick`.
OLD_SCHEMAS = ("2", "3", "4", "5", "6", "7")
#: The chain hash of each log, computed by the release that wrote it.
CHAINS = {
    "2": "f1b74df16ef9e8c1fb7baa7a4fe0d11a45b46889aecde08a6087b595aa3b7ef4",
    "3": "c2650bf7d74aadcf594ac83ba9ce4b5b1fd5d787ab0ebb232bd33b2975ffb083",
    "4": "c2650bf7d74aadcf594ac83ba9ce4b5b1fd5d787ab0ebb232bd33b2975ffb083",
    "5": "c2650bf7d74aadcf594ac83ba9ce4b5b1fd5d787ab0ebb232bd33b2975ffb083",
    "6": "c2650bf7d74aadcf594ac83ba9ce4b5b1fd5d787ab0ebb232bd33b2975ffb083",
    "7": "c2650bf7d74aadcf594ac83ba9ce4b5b1fd5d787ab0ebb232bd33b2975ffb083",
}
#: The number of events in each log.
EVENTS = 17

#: The statements that created the indexes of a table; indexes of constraints have none.
_INDEXES = "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND type = 'index' AND sql IS NOT NULL"


def write_old_store(url: str, schema: str) -> None:
    """Creates the store of a schema in an empty database; on PostgreSQL without its read model."""
    dump = gzip.decompress((OURS / "stores" / f"schema-{schema}.sql.gz").read_bytes()).decode()
    parsed = make_url(url)
    is_file = parsed.get_backend_name() == "sqlite"
    with closing(sqlite3.connect(Path(parsed.database or "") if is_file else ":memory:")) as file:
        file.executescript(dump)
        if is_file:
            return
        engine = open_engine(url)
        with engine.begin() as connection:
            tables.METADATA.create_all(connection)
            for table in tables.METADATA.sorted_tables:
                _copy(file, connection, table)
        engine.dispose()


def _copy(file: sqlite3.Connection, connection: Connection, table: Table) -> None:
    """Copies the rows of a table, and changes the columns and indexes of the copy to those of the old table.

    Drops the copy if the old store has no such table.
    """
    new_names = {column.name for column in table.columns}
    names = [name for _, name, *_ in file.execute(f"PRAGMA table_info({table.name})")]
    if not names:
        table.drop(connection)
        return
    for name in names:
        if name not in new_names:
            connection.exec_driver_sql(f'ALTER TABLE {table.name} ADD COLUMN {name} text COLLATE "C" NOT NULL')
    for name in new_names - {*names}:
        connection.exec_driver_sql(f"ALTER TABLE {table.name} DROP COLUMN {name}")
    for index in table.indexes:
        index.drop(connection)
    for (statement,) in file.execute(
        "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND type = 'index'", (table.name,)
    ):
        if statement:  # None for the index of a constraint
            connection.exec_driver_sql(statement)
    for row in file.execute(f"SELECT * FROM {table.name}"):
        values = _typed(table, dict(zip(names, row, strict=True)))
        marks = ", ".join(["%s"] * len(names))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", values)


def _typed(table: Table, row: dict[str, Any]) -> tuple[Any, ...]:
    booleans = {column.name for column in table.columns if isinstance(column.type, Boolean)}
    return tuple(bool(value) if name in booleans else value for name, value in row.items())
