"""Statements that a connection to PostgreSQL keeps, and whose rows come while the server goes on finding them.

The driver prepares nothing that it streams, and planning takes as long as a hundred rows; so this goes through the
layer below it. SQL's own EXECUTE would see the moment before its locks, when a rebuild may not have swapped its tables.
"""

from __future__ import annotations

import select
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import psycopg
from psycopg import capabilities
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

#: Rows that are taken over together.
CHUNK_ROWS: Final = 100


class PreparedStatements:
    """The statements of one connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._names: dict[str, bytes] = {}

    def rows(self, sql: str, values: Sequence[str | int]) -> Generator[Any, None, None]:
        """The rows of a query, a transaction of its own. sql: with `?` for parameters.

        Whoever does not take all of them, or fails, loses the connection. Raises: psycopg.ErrorKind.
        """
        link, taken = self._connection.pgconn, Transformer(self._connection)
        done = False
        try:
            link.send_query_prepared(self._name(sql), [str(value).encode() for value in values])
            if capabilities.has_stream_chunked():
                link.set_chunked_rows_mode(CHUNK_ROWS)
            else:  # row by row, as client libraries before 17 do it, takes longer
                link.set_single_row_mode()
            for result in _results(link):
                taken.set_pgresult(result)
                yield from taken.load_rows(0, result.ntuples, tuple)
            done = True
        finally:
            if not done:
                self._connection.close()

    def _name(self, sql: str) -> bytes:
        if sql not in self._names:
            name = f"annals_{len(self._names)}"
            parts = sql.split("?")
            numbers = [*(f"${number}" for number in range(1, len(parts))), ""]
            numbered = "".join(chain.from_iterable(zip(parts, numbers, strict=True)))
            self._connection.execute(f"PREPARE {name} AS {numbered}".encode())
            self._names[sql] = name.encode()
        return self._names[sql]


def _results(link: PGconn) -> Iterator[PGresult]:
    """What comes of the statement that was sent, part by part. Raises: psycopg.ErrorKind."""
    wire = select.poll()
    wire.register(link.socket, select.POLLIN)
    while True:
        while link.is_busy():
            wire.poll()
            link.consume_input()
        result = link.get_result()
        if result is None:
            return
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
        yield result
