"""Describes failures of a store that no caller caused: full, failing or damaged disks, locks, no connection."""

from __future__ import annotations

import re
import sqlite3
from typing import Any, Final

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from annals.commands.store.damage import describe_damage
from annals.commands.store.database.driver_errors import postgres_errors
from annals.commands.store.database.store_lost import StoreLost

#: Primary result codes of SQLite.
_SQLITE_REASONS: Final = {
    sqlite3.SQLITE_FULL: "its disk is full",
    sqlite3.SQLITE_IOERR: "its disk fails",
    sqlite3.SQLITE_BUSY: "another program holds its lock",
    sqlite3.SQLITE_LOCKED: "another program holds its lock",
    sqlite3.SQLITE_READONLY: "it cannot be written to",
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
    sqlite3.SQLITE_NOMEM: "memory has run out",
}
#: Classes of SQLSTATE and their meanings; single codes precede their class.
_POSTGRESQL_REASONS: Final = {
    "53100": "its disk is full",
    "53200": "its memory has run out",
    "53300": "it has too many connections",
    "25006": "it cannot be written to",
    "25P03": "it has ended a long transaction",
    "25P04": "it has ended a long transaction",
    "42501": "it denies access to its tables",
    "42P01": "its tables are missing",
    "55P03": "another program holds its lock",
    "57014": "it has cancelled a statement",
    "08": "it is out of reach",
    "40": "another transaction conflicts with this one",
    "53": "it has too few resources",
    "57P": "it is being stopped or started",
    "58": "its disk fails",
}
#: In the messages of PostgreSQL with the code 53300.
_TOO_MANY_CONNECTIONS: Final = re.compile("too many (clients|connections)|connection slots are reserved")


class CommitUnconfirmed(sqlite3.OperationalError):
    """It is unknown whether what a COMMIT was to record is recorded, or whether it would survive a failover.

    An error of a driver, so that what handles outages handles this one as well.
    """

    def __init__(
        self, cause: str = "its connection was lost during a commit, so that what was written may be recorded or not"
    ) -> None:
        super().__init__(cause)


class UnwritableDatabase(sqlite3.OperationalError):
    """The database is open and takes no writes; the message says why. It may take them later."""


def describe_outage(error: BaseException) -> str | None:
    """The cause in words if a database error reports an outage; None for any other error."""
    if damage := describe_damage(error):
        return damage
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, (StoreLost, CommitUnconfirmed)):
        return str(cause)
    if isinstance(cause, sqlite3.Error):
        return _SQLITE_REASONS.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
    if isinstance(cause, postgres_errors("Error")):
        return _describe_postgresql_error(cause)
    return "it has no connection left" if isinstance(cause, NoConnection) else None


def _describe_postgresql_error(error: Any) -> str | None:
    state: str | None = error.sqlstate
    if state is None:  # it was not reached, or the connection broke; the driver drops the code of a refused connection
        if _TOO_MANY_CONNECTIONS.search(str(error)):
            return _POSTGRESQL_REASONS["53300"]
        return "it is out of reach" if isinstance(error, postgres_errors("OperationalError")) else None
    return next(
        (description for code_prefix, description in _POSTGRESQL_REASONS.items() if state.startswith(code_prefix)), None
    )
