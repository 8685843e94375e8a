"""Any changed byte of the log, its heads, interactions and documents is found, with its position."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, LargeBinary, Table, Text, cast, select
from sqlalchemy.exc import IntegrityError

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.database import tables
from annals.commands.store.log import Store
from annals.commands.store.mapper import UnreadableEvent
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.commands import Command
from tests.support.examples import examples
from tests.support.small_decider import decide, delete, write

TABLES = (tables.log, tables.interaction, tables.document, tables.head)
EXAMPLES = {"sqlite": 100, "postgresql": 25}


class Cell(NamedTuple):
    """One value of one row. key: of the row. positions: a finding has to have one of them if the value changes."""

    column: Column[Any]
    key: Any
    value: Any
    positions: range


@pytest.fixture
def cells(store: Store) -> list[Cell]:
    """Every value of a log, see `fill`."""
    fill(store)
    assert list(verify_log(store)) == []
    return list(stored(store))


def filled_store(url: str) -> Store:
    """A new store with a log, see `fill`."""
    store = Store(url)
    store.create()
    fill(store)
    return store


def fill(store: Store) -> None:
    """Records interactions with the positions 1 and 2; 3 (a document); 4 and 5 (deletions); 6."""
    commands: list[Command] = [
        write("/dirs/a", "/dirs/a/files/f", name="one"),
        write("/dirs/b", document=b"content", name="é"),
        delete("/dirs/a"),
        write("/dirs/b", name="three", number=1.5),
    ]
    handle([PendingCommand(command, caller="Zoë") for command in commands], store, [], decide)


def stored(store: Store) -> Iterator[Cell]:
    with store.engine.connect() as connection:
        spans = [range(row.first, row.last + 1) for row in connection.execute(select(tables.interaction))]
        of = {position: span for span in spans for position in span}
        for table in TABLES:
            for row in connection.execute(select(table)):
                positions = range(3, 4) if table is tables.document else of[row[1 if table is tables.head else 0]]
                found = (Cell(column, row[0], row._mapping[column], positions) for column in table.columns)
                yield from (cell for cell in found if cell.value not in (None, "", b""))


def flipped(value: Any, bit: int) -> Any:
    """The value with one bit flipped; text as its bytes."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value ^ (1 << bit % 31)
    content = bytearray(value.encode() if isinstance(value, str) else value)
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    return bytes(content)


def is_same_state(cell: Cell, other: Any) -> bool:
    """Whether a value stands for the same state as before: zstd ignores some bits, and hashes cover the state."""
    return cell.column is tables.log.c.state and state_of(other) == state_of(cell.value)


def state_of(stored: Any) -> Any:
    """The state that a value stands for; a value that cannot be read stands for itself."""
    try:
        return decompress_state(stored)
    except UnreadableEvent:
        return stored


def put(store: Store, cell: Cell, key: Any, value: Any) -> None:
    """Writes a value over a cell's. SQLite takes any bytes for text, PostgreSQL takes UTF-8 only."""
    table, column = cell.column.table, cell.column
    is_text = isinstance(column.type, Text) and isinstance(value, bytes)
    if is_text and store.engine.dialect.name == "sqlite":
        value = cast(cast(value, LargeBinary), Text)
    elif is_text:
        text = value.decode(errors="ignore")
        assume(text.encode() == value and "\0" not in text)
        value = text
    with store.engine.begin() as connection:
        changed = connection.execute(table.update().where(next(iter(table.primary_key)) == key).values({column: value}))
        assert changed.rowcount == 1


@pytest.mark.generated
def test_a_flipped_bit_is_found_where_it_is(store: Store, cells: list[Cell]) -> None:
    # Proof: chain and state hash cover every column of every row, documents are their SHA-256
    with store.engine.connect() as connection:
        rows = {table: list(connection.execute(select(table))) for table in TABLES}

    @settings(
        max_examples=examples(EXAMPLES[store.engine.dialect.name]),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(cells), st.integers(0, 10_000))
    def run(cell: Cell, bit: int) -> None:
        other = flipped(cell.value, bit)
        assume(not is_same_state(cell, other))
        try:
            put(store, cell, cell.key, other)
        except IntegrityError:
            assume(False)  # another row has that key
        found = {finding.position for finding in verify_log(store)}
        restored(store, cell.column.table, rows[cell.column.table])
        assert found & set(cell.positions), (cell, bit, found)

    run()
    assert list(verify_log(store)) == []


#: SQL for the new value of a cell, each of another SQLite type than the one before.
OTHERS = ("'12x'", "x'3132'", "1.5", "x''", "-7")
#: Columns that are SQLite's own row numbers, and hold nothing else.
NUMBERS = ("log.position", "interaction.last")
FREE = [column for table in TABLES for column in table.columns if str(column) not in NUMBERS]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("column", FREE, ids=str)
def test_a_value_of_another_type_is_found(sqlite_url: str, column: Column[Any], other: str) -> None:
    # Proof: SQLite stores values of any type in any column, and one flipped bit can turn a number into text
    store = filled_store(sqlite_url)
    table, key = column.table, next(iter(column.table.primary_key))
    with store.engine.begin() as connection:
        last = connection.exec_driver_sql(f"SELECT max({key.name}) FROM {table.name}").scalar_one()
        connection.exec_driver_sql(f"UPDATE {table.name} SET {column.name} = {other} WHERE {key.name} = ?", (last,))
    found = list(verify_log(store))
    store.close()
    assert found
    assert all(0 < finding.position <= 7 for finding in found)


@pytest.mark.generated
def test_a_flipped_bit_of_the_file_is_found(sqlite_url: str, tmp_path: Path) -> None:
    # Proof: also if the database itself fails, or if the copy of a value that is read is in an index
    filled_store(sqlite_url).close()
    path = tmp_path / "annals.db"
    whole, rows = path.read_bytes(), scanned(path)
    with closing(sqlite3.connect(path)) as driver:
        size = driver.execute("PRAGMA page_size").fetchone()[0]
        names = ", ".join(f"'{table.name}'" for table in TABLES)
        roots = driver.execute(f"SELECT rootpage FROM sqlite_master WHERE tbl_name IN ({names})").fetchall()

    @settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(roots), st.integers(0, size - 1), st.integers(0, 7))
    def run(root: tuple[int], offset: int, bit: int) -> None:
        content = bytearray(whole)
        content[(root[0] - 1) * size + offset] ^= 1 << bit
        path.write_bytes(content)
        same = scanned(path) == rows
        store = Store(sqlite_url)
        found = list(verify_log(store))
        store.close()
        assert found or same, (root, offset, bit)

    run()


def scanned(path: Path) -> Any:
    """The types and values in the tables, read without an index; the error if the database cannot read them."""
    with closing(sqlite3.connect(path)) as driver:
        driver.text_factory = bytes
        try:
            log, *others = [list(driver.execute(_scan(table))) for table in TABLES]
            return [(*row[:-1], state_of(row[-1])) for row in log], *others
        except sqlite3.DatabaseError as error:
            return str(error)


def _scan(table: Table) -> str:
    columns = ", ".join(f"typeof({column.name}), {column.name}" for column in table.columns)
    # A table without row numbers is its own index.
    return f"SELECT {columns} FROM {table.name}{'' if table is tables.head else ' NOT INDEXED'}"


def restored(store: Store, table: Table, rows: list[Any]) -> None:
    """Puts the rows of a table back as they were."""
    with store.engine.begin() as connection:
        connection.execute(table.delete())
        connection.execute(table.insert(), [dict(row._mapping) for row in rows])
