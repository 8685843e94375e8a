"""Detects a damaged store: which errors report damage, and whether any occurred since the process started.

Waiting does not repair damage, so a process that has found damage is not ready until it is restarted.
"""

from __future__ import annotations

import logging
import sqlite3
from functools import lru_cache
from threading import Lock
from typing import Final

from sqlalchemy.exc import DBAPIError

from annals.commands.store.mapper import UnknownTopic, UnreadableEvent

_LOG: Final = logging.getLogger("annals.store")


class UnreadableRow(ValueError):
    """A row derived from the log is damaged."""


_SQLITE_CODES: Final = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
#: Python's driver reports bytes that are not text with this message and without a code.
_UNDECODABLE_MESSAGE: Final = "Could not decode to UTF-8"
#: The class of SQLSTATE for damaged tables and indexes.
_POSTGRESQL_CODES: Final = frozenset(("XX001", "XX002"))


def describe_damage(error: BaseException) -> str | None:
    """Which part is damaged, in words, if the error reports damage; None for any other error."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        is_damaged = getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE_CODES or str(cause).startswith(
            _UNDECODABLE_MESSAGE
        )
        return "its file is damaged" if is_damaged else None
    if getattr(cause, "sqlstate", None) in _POSTGRESQL_CODES:
        return "its data are damaged"
    if isinstance(cause, UnreadableRow):
        return "its read model is damaged"
    is_damaged = isinstance(cause, UnreadableEvent) and not isinstance(cause, UnknownTopic)
    return "its log is damaged" if is_damaged else None


def remedy(error: BaseException) -> str:
    """What repairs damage that an error reports."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return "`annals rebuild` makes it again from the log" if isinstance(cause, UnreadableRow) else "restore a backup"


@lru_cache(maxsize=1000)
def report_once(message: str) -> None:
    """Logs a line about a part of the store that is skipped because it is damaged; each line once."""
    _LOG.error("%s; `annals log verify` says what is wrong; restore a backup", message)


class DamageMonitor:
    """The damage found in one store. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._first_damage: str | None = None

    @property
    def first_damage(self) -> str | None:
        """The first damage found, in words; None while there is none."""
        return self._first_damage

    def note(self, error: BaseException) -> bool:
        """Whether an error reports damage of the store; the first such error is logged."""
        damage = describe_damage(error)
        if damage is None:
            return False
        with self._lock:
            first, self._first_damage = self._first_damage is None, self._first_damage or damage
        if first:
            message = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
            _LOG.error(
                "the store cannot be used: %s (%s); `annals log verify` says where; %s",
                damage,
                message[:500],
                remedy(error),
            )
        return True
