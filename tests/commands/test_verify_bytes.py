"""Any byte of the log, of its interactions and of the documents that is not what it was is found, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, LargeBinary, Table, Text, cast, select
from sqlalchemy.exc import IntegrityError

from commands import tables
from commands.handle import Waiting, handle
from commands.log import Store
from commands.verify import verify
from tests.commands.facts import decide, delete, write

TABLES = (tables.log, tables.interaction, tables.document)
EXAMPLES = {"sqlite": 100, "postgresql": 25}


class Cell(NamedTuple):
    """One value of one row. key: of the row. positions: one of them has to be named when the value is another."""

    column: Column[Any]
    key: Any
    value: Any
    positions: range


@pytest.fixture
def cells(store: Store) -> list[Cell]:
    """Every value of a log with positions 1 and 2; 3 (a document); 4 and 5 (deletions); 6."""
    orders = [
        write("/dirs/a", "/dirs/a/files/f", name="one"),
        write("/dirs/b", document=b"content", name="é"),
        delete("/dirs/a"),
        write("/dirs/b", name="three", number=1.5),
    ]
    handle([Waiting(order, caller="Zoë") for order in orders], store, [], decide)
    assert list(verify(store)) == []
    return list(stored(store))


def stored(store: Store) -> Iterator[Cell]:
    with store.engine.connect() as connection:
        spans = [range(row.first, row.last + 1) for row in connection.execute(select(tables.interaction))]
        of = {position: span for span in spans for position in span}
        for table in TABLES:
            for row in connection.execute(select(table)):
                positions = range(3, 4) if table is tables.document else of[row[0]]
                yield from (Cell(column, row[0], row._mapping[column], positions) for column in table.columns)


def flipped(value: Any, bit: int) -> Any:
    """The value with one bit turned; text as its bytes."""
    if isinstance(value, int):
        return value ^ (1 << bit % 31)
    content = bytearray(value.encode() if isinstance(value, str) else value)
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    return bytes(content)


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


def test_a_flipped_bit_is_found_where_it_is(store: Store, cells: list[Cell]) -> None:
    # Proof: chain and state hash cover every column of every row, documents are their SHA-256
    with store.engine.connect() as connection:
        rows = {table: list(connection.execute(select(table))) for table in TABLES}

    @settings(
        max_examples=EXAMPLES[store.engine.dialect.name],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(cells), st.integers(0, 10_000))
    def run(cell: Cell, bit: int) -> None:
        other = flipped(cell.value, bit)
        try:
            put(store, cell, cell.key, other)
        except IntegrityError:
            assume(False)  # another row has that key
        found = {finding.position for finding in verify(store)}
        restored(store, cell.column.table, rows[cell.column.table])
        assert found & set(cell.positions), (cell, bit, found)

    run()
    assert list(verify(store)) == []


def restored(store: Store, table: Table, rows: list[Any]) -> None:
    """Puts the rows of a table back as they were."""
    with store.engine.begin() as connection:
        connection.execute(table.delete())
        connection.execute(table.insert(), [dict(row._mapping) for row in rows])
