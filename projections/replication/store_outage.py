"""A database that cannot be used for a while, such as a locked SQLite file: said once at its beginning and its end."""

from __future__ import annotations

import logging
import sqlite3
import time
from threading import Lock
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError

#: What the drivers raise, bare or wrapped, when the database cannot be used now.
DATABASE_ERRORS: Final = (sqlite3.Error, psycopg.Error, DBAPIError)
#: Seconds that it may last before anything is said: a large import keeps everybody else from writing as well.
_SHORT: Final = 2.0


class StoreOutage:
    """What links say of their database. Its methods may be called from any thread."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = Lock()
        self._began: float | None = None
        self._said = False

    def failed(self, reason: str) -> None:
        """The database could not be used, or not be written to; says so, once, where that lasts."""
        with self._lock:
            now = time.monotonic()
            self._began = now if self._began is None else self._began
            if not self._said and now - self._began >= _SHORT:
                self._said = True
                self._log.warning("the database cannot be used: %s; links wait and try again", reason)

    def ended(self) -> None:
        """Something was written to the database; says so if it was said before that this cannot be done."""
        with self._lock:
            if self._said and self._began is not None:
                seconds = time.monotonic() - self._began
                self._log.warning("the database can be used again, after %.0f s; links go on", seconds)
            self._began, self._said = None, False


def error_text(error: Exception) -> str:
    """What a driver says, in one line."""
    said = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(said).split()) or type(error).__name__
