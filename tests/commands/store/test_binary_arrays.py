"""PostgreSQL receives arrays unchanged, whatever their values."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from annals.commands.store.database.binary_arrays import ARRAY_TYPES, encode_columns, execute

COLUMNS: dict[type, tuple[str, list[Any]]] = {
    str: ("text", ["", "a", 'quoted " \\ {x,y}', "Größe 𝄞", None]),
    bytes: ("bytea", [b"", b"\0\1\xff", b"x" * 100_000, None]),
    int: ("bigint", [0, -1, 1 << 62, -(1 << 63), None]),
    float: ("double precision", [0.1, -1e300, 5e-324, 3, None]),
    bool: ("boolean", [True, False, None]),
}


def stored(connection: psycopg.Connection[Any], kind: type, values: list[Any]) -> list[Any]:
    """The values that a table returns after they were inserted."""
    name = COLUMNS[kind][0]
    connection.execute(f"CREATE TEMP TABLE sent (number bigint, value {name}) ON COMMIT DROP")
    arrays = encode_columns(list(enumerate(values)), (int, kind))
    execute(connection, f"INSERT INTO sent SELECT * FROM unnest(%b::bigint[], %b::{name}[])", arrays)
    return [value for (value,) in connection.execute("SELECT value FROM sent ORDER BY number").fetchall()]


@pytest.mark.parametrize("kind", ARRAY_TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("chosen", ["all", "none", "one"])
def test_values_arrive_unchanged(postgres_url: str, kind: type, chosen: str) -> None:
    values = {"all": COLUMNS[kind][1], "none": [None, None], "one": COLUMNS[kind][1][:1]}[chosen]
    with psycopg.connect(postgres_url) as connection:
        assert stored(connection, kind, values) == values


def test_a_statement_is_prepared_once(postgres_url: str) -> None:
    """Neither the size of numbers nor a column without values causes another prepared statement."""
    with psycopg.connect(postgres_url) as connection:
        for values in ([1], [1 << 40], [None], [None, 5]):
            stored(connection, int, values)
            connection.commit()
        rows = connection.execute("SELECT 1 FROM pg_prepared_statements WHERE statement LIKE 'INSERT%'").fetchall()
    assert len(rows) == 1
