"""When and from where each API key was last used: a table beside the log (ACC-48). No rebuild touches it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, Column, MetaData, Table

from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.tables import TEXT
from annals.projections.database import state_database
from annals.projections.database.state_database import StateDatabase

#: Seconds between two writes about one key.
WRITE_SECONDS: Final = 60.0
#: Seconds to wait for other writers of a SQLite file, also while the server stops.
_LOCK_SECONDS: Final = 5.0
METADATA: Final = MetaData()
_LOG: Final = logging.getLogger("annals.callers")
_TABLE: Final = Table(
    "key_use",
    METADATA,
    Column("id", TEXT, primary_key=True),
    Column("time", BigInteger, nullable=False),
    Column("address", TEXT, nullable=False),
)


class KeyUse(NamedTuple):
    """time: in seconds since 1970. address: of the client."""

    time: int
    address: str


class KeyUses:
    """Notes uses in memory, and writes them now and then. All but `note` block; any thread may call each."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store = StateDatabase(url, _LOCK_SECONDS)
        self._store_lock = Lock()
        self._noted_lock = Lock()  # held for moments only, because the event loop takes it
        self._noted: dict[str, KeyUse] = {}
        self._written: dict[str, float] = {}

    def open(self) -> None:
        """Makes the table. Raises: one of `driver_errors()`."""
        state_database.create_tables(self._url, METADATA)

    def note(self, id: str, address: str) -> None:
        """Remembers the newest use of a key."""
        with self._noted_lock:
            self._noted[id] = KeyUse(int(time.time()), address)

    def write(self, now: float) -> None:
        """Writes uses of keys that were not written within the last minute. Raises: one of `driver_errors()`."""
        with self._store_lock:
            noted = self._all_noted()
            due = {id: use for id, use in noted.items() if now - self._written.get(id, 0.0) >= WRITE_SECONDS}
            self._write(due)
            self._written |= dict.fromkeys(due, now)

    def _all_noted(self) -> dict[str, KeyUse]:
        with self._noted_lock:
            return dict(self._noted)

    def _write(self, uses: Mapping[str, KeyUse]) -> None:
        """Writes uses. A later use of the same key, which was noted meanwhile, stays noted."""
        if not uses:
            return
        with self._store.writing() as db:
            db.upsert(_TABLE, [(id, *use) for id, use in uses.items()])
        with self._noted_lock:
            for id in [id for id, use in uses.items() if self._noted[id] is use]:
                del self._noted[id]

    async def write_due(self) -> None:
        """Writes what is due, in a thread. An error is logged, and what could not be written is tried again."""
        try:
            await asyncio.to_thread(self.write, time.time())
        except driver_errors() as error:
            _LOG.warning("the last uses of API keys could not be stored: %s", error)

    def read(self, ids: Collection[str]) -> dict[str, KeyUse]:
        """The last uses of some keys, by id. Raises: one of `driver_errors()`."""
        with self._store_lock, self._store.reading() as db:
            rows = db.all(f"SELECT id, time, address FROM key_use WHERE {db.in_list('id')}", [db.list_parameter(ids)])
            noted = self._all_noted()
        stored = {id: KeyUse(time, address) for id, time, address in rows}
        return stored | {id: use for id, use in noted.items() if id in ids}

    def close(self) -> None:
        """Writes the rest if it can, and closes the connection."""
        with self._store_lock:
            try:
                self._write(self._all_noted())
            except driver_errors() as error:
                _LOG.warning("the last uses of API keys could not be stored: %s", error)
            finally:
                self._store.close()
