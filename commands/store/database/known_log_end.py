"""Notices that the log has lost its end while the process runs: an older backup was restored, or a standby took over.

Caches and readers of a process go by positions, and the next writes use those of lost events again. So a process that
has read them cannot go on. On PostgreSQL both events usually end all connections, so readers check each new connection,
and requests cost nothing. Writers know the end of the log that they continue, and check that.
"""

from __future__ import annotations

import logging
import sqlite3
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

from sqlalchemy import URL

from annals.commands.store.database.store_lost import StoreLost

_LOG: Final = logging.getLogger("annals.store")

#: A position and a chain hash.
_End = tuple[int, bytes]
_NOTHING: Final[_End] = (0, b"")


class LogEndLost(StoreLost):
    """The log does not have the last interaction that the process knows."""


class KnownLogEnd:
    """The last interaction of a log that any part of the process has seen committed. Thread-safe."""

    def __init__(self) -> None:
        self._end = _NOTHING  # one value, which other threads see whole
        self._lock = Lock()  # a thread with an earlier end does not replace a later one
        self._was_behind: bool | None = None  # of the last report
        self._read_position = 0
        #: Changes when the log may be another one than before, of which the process has only read the end. What is kept
        #: from before may not be used then.
        self.generation = 0

    def note(self, position: int, chain: bytes) -> None:
        """Remembers an interaction by its last position and its chain hash; an earlier one has no effect."""
        with self._lock:
            if position > self._end[0]:
                self._end = position, chain

    def note_read(self, position: int) -> None:
        """Remembers that the process has read the state at a position, whose chain hash it does not know."""
        if position > self._read_position:
            self._read_position = position

    def check_end(self, connection: Any, position: int, chain: bytes) -> None:
        """`check` where the end of the log has been read. Cost: none if this process has written it."""
        if (position, chain) != self._end:
            self.check(connection)

    def forget(self) -> None:
        """Forgets it, because the store is closed."""
        self._end = _NOTHING

    def check(self, connection: Any) -> None:
        """Raises: LogEndLost if the log of a driver's connection does not have it; the first one of a kind is logged.

        Other servers may have written more. Cost: one look-up.
        """
        position, chain = self._end
        if not position:
            return
        rows = connection.execute(f"SELECT chain FROM interaction WHERE last = {position}").fetchall()
        if rows == [(chain,)]:
            return
        is_behind, cause = _difference(connection, position)
        if is_behind != self._was_behind:
            self._was_behind = is_behind
            _LOG.error("the store cannot be used: %s", cause)
        raise LogEndLost(cause)

    def check_new(self, connection: Any) -> None:
        """`check` for a connection that was just opened; an error closes it."""
        checked_position = self._end[0]  # or a later one, if another thread notes one now
        try:
            self.check(connection)
            connection.commit()
            if self._read_position > checked_position:
                self._read_position = 0
                self.generation += 1
        except BaseException:
            connection.close()
            raise


def _difference(connection: Any, position: int) -> tuple[bool, str]:
    """Whether the database is a standby that is behind, and what is the matter. position: of the known end."""
    end = connection.execute("SELECT max(last) FROM interaction").fetchall()[0][0] or 0
    server, is_standby = "", False
    if not isinstance(connection, sqlite3.Connection):
        server = f" ({connection.info.host}:{connection.info.port})"
        is_standby = connection.execute("SELECT pg_is_in_recovery()").fetchall()[0][0]
    if is_standby and end < position:
        return True, (
            f"the database{server} is a standby that is behind: its log ends at position {end}, and this server has"
            f" read {position}; connect to the primary"
        )
    found = f"it ends at position {end} instead of {position}" if end < position else f"position {position} is another"
    return False, (
        f"the log of the database{server} has lost events that this server has read: {found};"
        " if this is the right database, restart the server"
    )


#: By the URL of the database; each exists as long as a store or a reader has it.
_KNOWN: Final = WeakValueDictionary[URL, KnownLogEnd]()


def known_log_end(url: URL) -> KnownLogEnd:
    """What the process knows of the log of a database."""
    return _KNOWN.setdefault(url, KnownLogEnd())
