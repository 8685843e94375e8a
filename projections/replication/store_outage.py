"""Reports that the database is unavailable, such as a locked SQLite file: once at the beginning and once at the end."""

from __future__ import annotations

import logging
import time
from threading import Lock
from typing import Final

from sqlalchemy.exc import DBAPIError

from annals.commands.store.database.driver_errors import driver_errors

#: Seconds of unavailability before it is reported. A large import also blocks all other writers.
_MIN_OUTAGE_SECONDS: Final = 2.0


class StoreOutage:
    """The reports of all links about their database. Any thread may call its methods."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = Lock()
        self._began_at: float | None = None
        self._reported = False

    def report_failure(self, reason: str) -> None:
        """Records that the database could not be used or written. Reports it once if that lasts."""
        with self._lock:
            now = time.monotonic()
            self._began_at = now if self._began_at is None else self._began_at
            if not self._reported and now - self._began_at >= _MIN_OUTAGE_SECONDS:
                self._reported = True
                self._log.warning("the database cannot be used: %s; links wait and try again", reason)

    def report_recovery(self) -> None:
        """Records a successful write. Reports it if the outage was reported."""
        with self._lock:
            if self._reported and self._began_at is not None:
                seconds = time.monotonic() - self._began_at
                self._log.warning("the database can be used again, after %.0f s; links go on", seconds)
            self._began_at, self._reported = None, False


def database_errors() -> tuple[type[Exception], ...]:
    """Exceptions for an unavailable database, raised by the drivers directly or wrapped by SQLAlchemy."""
    return (*driver_errors(), DBAPIError)


def error_text(error: Exception) -> str:
    """The message of a driver, in one line."""
    driver_error = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(driver_error).split()) or type(error).__name__
