"""Rows as they are needed: a result is not fetched whole, in whatever state a connection is."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from commands.engine import open_engine
from projections import database
from projections.database import CHUNK
from tests.stores import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

MANY = 10 * CHUNK
#: What a cursor has to have in the middle of a result, and a whole result has not: more to come.
OPEN = "SELECT count(*) FROM pg_cursors WHERE name LIKE 'stream%'"


@pytest.mark.parametrize("begun", [False, True], ids=["before any statement", "after one"])
def test_a_stream_of_a_transaction_is_never_fetched_whole(postgres_url: str, begun: bool) -> None:
    # what a rebuild, an export and a verification need, whose memory does not grow with the registry
    engine = open_engine(postgres_url)
    with engine.begin() as connection:
        if begun:
            connection.execute(text("SELECT 1"))
        db = database.over(connection)
        rows = db.stream(f"SELECT g FROM generate_series(1, {MANY}) AS g")
        assert next(iter(rows)) == (1,)
        found: Any = db.one(OPEN)
        assert found == (1,)
        assert sum(1 for _ in rows) == MANY - 1
    engine.dispose()
