"""Which of the processes on one database writes the search index."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import make_url

from annals.projections.database.connections import ReadConnection, connect

# The oid of the log's table is the write lock, and its negative the lock of rebuilds.
_TRY_LOCK: Final = "SELECT pg_try_advisory_lock('log'::regclass::oid::bigint + (1::bigint << 40))"


class Leadership:
    """Held by one process of a PostgreSQL database as long as its connection lives; another one takes over then.

    On SQLite each process may write: one server has few of them there, and the index itself keeps them apart.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_needed = make_url(url).get_backend_name() == "postgresql"
        self._connection: ReadConnection | None = None
        self._has_lock = False

    def is_held(self) -> bool:
        """Whether this process writes the index. Raises: one of `driver_errors()`."""
        if not self._is_needed:
            return True
        try:
            return self._try_lock()
        except Exception:
            self.release()
            raise

    def release(self) -> None:
        """Lets another process write the index."""
        connection, self._connection, self._has_lock = self._connection, None, False
        if connection is not None:
            connection.close()

    def _try_lock(self) -> bool:
        if self._connection is None:
            self._connection, self._has_lock = connect(self._url), False
        # A connection that the server has ended holds no lock any more, so each look uses it.
        statement = "SELECT true" if self._has_lock else _TRY_LOCK
        row: Any = self._connection.one(statement)
        self._has_lock = bool(row[0])
        return self._has_lock
