"""Prepared statements of a PostgreSQL connection: look-ups, and rows that arrive while the caller does other work.

The driver does not prepare statements that it streams, and planning takes as long as a hundred rows. Its cursors take
longer than the server needs to find a row by its key. This module therefore uses the layer below it, libpq. SQL's own
EXECUTE would take its snapshot before its locks, when a rebuild may not have swapped its tables.
"""

from __future__ import annotations

import select
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import psycopg
from psycopg import capabilities
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

#: The number of rows per chunk.
CHUNK_ROWS: Final = 100


class PreparedStatements:
    """The prepared statements of one connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._names: dict[str, bytes] = {}
        self._transformer = Transformer(connection)
        self._received_rows: list[Any] = []

    def row(self, sql: str, values: Sequence[str | int]) -> Any:
        """The first row of a query, or None. sql: with `?` for parameters. Raises: psycopg.Error."""
        libpq_connection, parameters = self._connection.pgconn, [str(value).encode() for value in values]
        if any(b"\0" in parameter for parameter in parameters):
            raise psycopg.DataError("a text has the character NUL")  # libpq would end the text there
        result = libpq_connection.exec_prepared(self.prepare(sql), parameters, result_format=Format.BINARY)
        _raise_error(result, libpq_connection)
        if not result.ntuples:
            return None
        self._transformer.set_pgresult(result)
        return self._transformer.load_row(0, tuple)

    def rows(self, sql: str, values: Sequence[str | int]) -> Generator[Any, None, None]:
        """The rows of a query, in its own transaction. sql: with `?` for parameters.

        If the caller fails, or does not read all rows, the connection is closed. Raises: psycopg.Error.
        """
        libpq_connection, transformer = self._connection.pgconn, Transformer(self._connection)
        is_complete = False
        try:
            libpq_connection.send_query_prepared(self.prepare(sql), [str(value).encode() for value in values])
            _flush(libpq_connection)
            if capabilities.has_stream_chunked():
                libpq_connection.set_chunked_rows_mode(CHUNK_ROWS)
            else:  # client libraries before 17 return single rows, which is slower
                libpq_connection.set_single_row_mode()
            for result in _results(libpq_connection):
                transformer.set_pgresult(result)
                yield from transformer.load_rows(0, result.ntuples, tuple)
            is_complete = True
        finally:
            if not is_complete:
                self._connection.close()

    def send(self, sql: str, values: Sequence[str | int]) -> None:
        """Sends a query whose rows `receive` returns. Run no other query in between. Raises: psycopg.Error."""
        parameters = [str(value).encode() for value in values]
        self._connection.pgconn.send_query_prepared(self.prepare(sql), parameters, result_format=Format.BINARY)
        _flush(self._connection.pgconn)

    def receive(self) -> list[Any] | None:
        """All rows of the query that was sent; None if some have not arrived yet. Does not wait for them.

        Raises: psycopg.Error.
        """
        libpq_connection = self._connection.pgconn
        libpq_connection.consume_input()
        while not libpq_connection.is_busy():
            result = libpq_connection.get_result()
            if result is None:
                rows, self._received_rows = self._received_rows, []
                return rows
            _raise_error(result, libpq_connection)
            self._transformer.set_pgresult(result)
            self._received_rows += self._transformer.load_rows(0, result.ntuples, tuple)
        return None

    def prepare(self, sql: str) -> bytes:
        """The name of a query in the server, prepared if it is new. Raises: psycopg.Error."""
        if sql not in self._names:
            name = f"annals_{len(self._names)}"
            parts = sql.split("?")
            placeholders = [*(f"${number}" for number in range(1, len(parts))), ""]
            numbered_sql = "".join(chain.from_iterable(zip(parts, placeholders, strict=True)))
            self._connection.execute(f"PREPARE {name} AS {numbered_sql}".encode())
            self._names[sql] = name.encode()
        return self._names[sql]


def _flush(libpq_connection: PGconn) -> None:
    """Sends what did not fit into the socket at once: the server answers nothing before it has all parameters."""
    while libpq_connection.flush():
        poller = select.poll()
        poller.register(libpq_connection.socket, select.POLLOUT)
        poller.poll()


def _raise_error(result: PGresult, libpq_connection: PGconn) -> None:
    if result.status != ExecStatus.TUPLES_OK:
        if libpq_connection.status != ConnStatus.OK:
            raise psycopg.OperationalError(libpq_connection.get_error_message())
        raise psycopg.errors.error_from_result(result)


def _results(libpq_connection: PGconn) -> Iterator[PGresult]:
    """The results of the statement that was sent, part by part. Raises: psycopg.Error."""
    poller = select.poll()
    poller.register(libpq_connection.socket, select.POLLIN)
    while True:
        while libpq_connection.is_busy():
            poller.poll()
            libpq_connection.consume_input()
        result = libpq_connection.get_result()
        if result is None:
            return
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
        yield result
