"""Reads and writes the tables of sessions."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from sqlalchemy import inspect

from annals.commands.store.database.engine import WRITING, open_engine
from annals.projections.database import state_database
from annals.projections.database.state_database import StateDatabase
from annals.projections.sessions import tables

#: Bytes of the key that signs cookies.
_KEY_BYTES: Final = 32
#: Seconds to wait for other writers of a SQLite file.
_LOCK_SECONDS: Final = 10.0
#: Maximum number of sessions of one caller: browsers, not sign-ins in a loop.
MAX_SESSIONS: Final = 100
#: Rows of one transaction of `rewrap`, between which others can write.
_REWRAPPED_ROWS: Final = 500
_COLUMNS: Final = "hash, authenticator, reference, name, caller, used, ends, checked, wrapped, sealed"

_DELETE_SURPLUS: Final = (
    "DELETE FROM session WHERE name = ? AND hash NOT IN "
    "(SELECT hash FROM session WHERE name = ? ORDER BY used DESC, hash LIMIT ?)"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; see `tables.session`."""

    hash: str
    authenticator: str
    reference: str
    name: str
    caller: str
    used: int
    ends: int
    checked: int
    wrapped: bytes = b""
    sealed: bytes = b""


def _drop_without_names(url: str) -> None:
    """Ends the sessions that an older program began, which do not name their callers: these sign in again."""
    engine = open_engine(url)
    try:
        with engine.execution_options(**{WRITING: True}).begin() as connection:
            found = inspect(connection)
            name = tables.session.name
            if found.has_table(name) and "name" not in {column["name"] for column in found.get_columns(name)}:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
    finally:
        engine.dispose()


class SessionStore:
    """The sessions of a registry, for all of its processes. Its methods block; any thread may call them.

    All raise one of `driver_errors()`. Commits wait for the disk, so that no session that has ended comes back after a
    loss of power.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._reader = StateDatabase(url)
        self._writer = StateDatabase(url, _LOCK_SECONDS, is_durable=True)
        # Requests read while a change waits for other writers.
        self._reader_lock, self._writer_lock = Lock(), Lock()

    def open(self) -> bytes:
        """Creates missing tables. Returns the key that signs cookies."""
        _drop_without_names(self._url)
        state_database.create_tables(self._url, tables.METADATA)
        with self._writer_lock, self._writer.writing() as db:
            db.run("INSERT INTO session_key VALUES (1, ?) ON CONFLICT DO NOTHING", (secrets.token_bytes(_KEY_BYTES),))
            (key,) = db.one("SELECT key FROM session_key WHERE number = 1")
        return bytes(key)

    def close(self) -> None:
        """Closes the connections."""
        with self._reader_lock:
            self._reader.close()
        with self._writer_lock:
            self._writer.close()

    def add(self, row: SessionRow, now: int, unused_since: int) -> None:
        """Stores a new session, and deletes those that have ended, or were last used before a time.

        Of a caller with too many, those used longest ago end.
        """
        values = (row.hash, row.authenticator, row.reference, row.name, row.caller, row.used, row.ends, row.checked)
        with self._writer_lock, self._writer.writing() as db:
            db.run("DELETE FROM session WHERE ends <= ? OR used < ?", (now, unused_since))
            db.run(_DELETE_SURPLUS, (row.name, row.name, MAX_SESSIONS - 1))
            db.insert(tables.session, [(*values, row.wrapped, row.sealed)])

    def find(self, hash: str) -> SessionRow | None:
        """The session with the hash of an id; None if there is none."""
        with self._reader_lock, self._reader.reading() as db:
            row: tuple[Any, ...] | None = db.one(f"SELECT {_COLUMNS} FROM session WHERE hash = ?", (hash,))
        return None if row is None else SessionRow(*row)

    def set_used(self, hash: str, now: int) -> None:
        """Notes a use of a session."""
        with self._writer_lock, self._writer.writing() as db:
            db.run("UPDATE session SET used = ? WHERE hash = ? AND used < ?", (now, hash, now))

    def claim_check(self, row: SessionRow, now: int) -> bool:
        """Whether this caller has to ask the provider; of several at the same time, in all processes, one has to."""
        values = (now, row.hash, row.checked)
        with self._writer_lock, self._writer.writing() as db:
            return bool(db.all("UPDATE session SET checked = ? WHERE hash = ? AND checked = ? RETURNING 1", values))

    def set_checked(self, hash: str, caller: str, wrapped: bytes, sealed: bytes) -> None:
        """Stores what the provider has answered."""
        with self._writer_lock, self._writer.writing() as db:
            values = (caller, wrapped, sealed, hash)
            db.run("UPDATE session SET caller = ?, wrapped = ?, sealed = ? WHERE hash = ?", values)

    def remove(self, hash: str) -> None:
        """Deletes a session, if there is one."""
        with self._writer_lock, self._writer.writing() as db:
            db.run("DELETE FROM session WHERE hash = ?", (hash,))

    def use_state(self, hash: str, ends: int, now: int) -> bool:
        """Whether a `state` is used for the first time. Deletes those that have expired."""
        with self._writer_lock, self._writer.writing() as db:
            db.run("DELETE FROM session_used_state WHERE ends <= ?", (now,))
            insert = "INSERT INTO session_used_state VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1"
            return bool(db.all(insert, (hash, ends)))

    def rewrap(self, wrap: Callable[[str, bytes], bytes | None]) -> int:
        """Wraps the data keys of all sessions again; returns how many.

        wrap: returns a data key wrapped again, by the hash of a session and the wrapped key; None to leave it.
        """
        count, last_hash = 0, ""
        while True:
            with self._writer_lock, self._writer.writing() as db:
                select = "SELECT hash, wrapped FROM session WHERE hash > ? AND length(sealed) > 0 ORDER BY hash LIMIT ?"
                rows = db.all(select, (last_hash, _REWRAPPED_ROWS))
                wrapped = [(wrap(hash, bytes(old)), hash, bytes(old)) for hash, old in rows]
                for values in wrapped:
                    if values[0] is not None:
                        db.run("UPDATE session SET wrapped = ? WHERE hash = ? AND wrapped = ?", values)
                        count += 1
            if not rows:
                return count
            last_hash = rows[-1][0]
