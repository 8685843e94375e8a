"""Writes that were refused because of who sent them: a table beside the log with a bound (ACC-116).

No rebuild touches it, and no export, replica or copy of the log has it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Lock
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table

from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.tables import TEXT
from annals.projections.database import state_database
from annals.projections.database.state_database import StateDatabase

#: The number of denials that wait to be written; more are dropped.
MAX_PENDING: Final = 1000
#: Seconds to wait for other writers of a SQLite file, before the next attempt.
_LOCK_SECONDS: Final = 2.0
METADATA: Final = MetaData()
_LOG: Final = logging.getLogger("annals.denials")


class DeniedWrite(NamedTuple):
    """One refused request.

    time: RFC 3339 in UTC. path: without query and secrets. reason: as in the log line of the denial. caller,
    authenticator, keyid: empty if not known; with a status of 401, those that the credential claims. left_out: denials
    for the same reason since the row before that have none, because there were too many in one second.
    """

    time: str
    address: str
    method: str
    path: str
    status: int
    reason: str
    caller: str = ""
    authenticator: str = ""
    keyid: str = ""
    left_out: int = 0


_TABLE: Final = Table(
    "denied_write",
    METADATA,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    *(
        Column(name, BigInteger if name in ("status", "left_out") else TEXT, nullable=False)
        for name in DeniedWrite._fields
    ),
)
_COLUMNS: Final = ", ".join(DeniedWrite._fields)
_INSERT: Final = f"INSERT INTO denied_write ({_COLUMNS}) VALUES ({', '.join('?' * len(DeniedWrite._fields))})"
_TRIM: Final = (
    "DELETE FROM denied_write WHERE number <= (SELECT number FROM denied_write ORDER BY number DESC LIMIT 1 OFFSET ?)"
)
_SELECT: Final = f"SELECT number, {_COLUMNS} FROM denied_write WHERE number < ? ORDER BY number DESC LIMIT ?"
_BEYOND_ALL: Final = (1 << 63) - 1


class DeniedWrites:
    """Notes denials in memory, and writes them now and then. All but `note` block; any thread may call them.

    most: the number of rows that are kept; the oldest go.
    """

    def __init__(self, url: str, most: int = 0) -> None:
        self._url = url
        self._most = most
        self._store = StateDatabase(url, _LOCK_SECONDS)
        self._lock = Lock()
        self._queue = Queue[DeniedWrite](MAX_PENDING)
        self._unwritten: list[DeniedWrite] = []

    def open(self) -> None:
        """Makes the table. Raises: one of `driver_errors()`."""
        state_database.create_tables(self._url, METADATA)

    def note(self, denied: DeniedWrite) -> None:
        """Remembers a denial, unless too many wait already."""
        with suppress(Full):
            self._queue.put_nowait(denied)

    def write(self) -> None:
        """Writes what was noted, and removes the oldest rows beyond the bound. Raises: one of `driver_errors()`."""
        with self._lock:
            self._take_noted()
            if not self._unwritten:
                return
            with self._store.writing() as db:
                for denied in self._unwritten:
                    db.run(_INSERT, denied)
                db.run(_TRIM, (self._most,))
            self._unwritten.clear()

    def _take_noted(self) -> None:
        with suppress(Empty):
            while len(self._unwritten) < MAX_PENDING:
                self._unwritten.append(self._queue.get_nowait())

    async def write_due(self) -> None:
        """Writes in a thread. An error is logged, and what could not be written is tried again."""
        await asyncio.to_thread(self._try_to_write)

    def _try_to_write(self) -> None:
        try:
            self.write()
        except driver_errors() as error:
            _LOG.warning("denied writes could not be stored: %s", error)

    def read(self, limit: int, before: int | None = None) -> list[tuple[int, DeniedWrite]]:
        """The last rows with their numbers, the newest first. before: only rows with lower numbers.

        Raises: one of `driver_errors()`.
        """
        with self._lock, self._store.reading() as db:
            rows = db.all(_SELECT, (_BEYOND_ALL if before is None else before, limit))
        return [(number, DeniedWrite._make(columns)) for number, *columns in rows]

    def close(self) -> None:
        """Writes the rest if it can, and closes the connection."""
        self._try_to_write()
        with self._lock:
            self._store.close()
