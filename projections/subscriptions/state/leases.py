"""Leases: which process works on which item, such as a subscription (SUB-805).

Each item has one process; items are shared evenly and taken over after a crash. Each process sends heartbeats. The next
heartbeat of another process frees the leases of a silent one, in a transaction that runs alone, so no lease has two
holders. A process that returns late finds its own row deleted.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from uuid import uuid4

from annals.commands.store.database.driver_errors import driver_errors
from annals.projections.database.drivers import Database
from annals.projections.database.state_database import StateDatabase
from annals.projections.subscriptions.state.tables import LeaseTables

#: Seconds to wait for another writer of a SQLite file. A long import blocks all writers, including lease renewals.
LOCK_WAIT_SECONDS: Final = 0.5
#: The longest lease that any process can have, in seconds.
MAX_LEASE_SECONDS: Final = 3600.0
#: The clock of the database, which all processes share.
_SELECT_NOW: Final = {
    True: "SELECT (julianday('now') - 2440587.5) * 86400.0",
    False: "SELECT extract(epoch FROM clock_timestamp())::float8",
}


@dataclass(frozen=True, slots=True)
class HeldLeases:
    """The leases of one process after a heartbeat.

    process: the name of this process. After a change of name, other processes may have held the items in between.
    ids: ids of the items that it holds.
    surplus_ids: those of them that it should release to another process.
    expires: the `time.monotonic()` before which no other process can take them.
    is_recorded: whether the database recorded the heartbeat. False if a long write of another process prevented it, in
    which case nobody can have taken a lease either.
    """

    process: str
    ids: frozenset[str]
    surplus_ids: frozenset[str]
    expires: float
    is_recorded: bool = True


class Leases:
    """The leases of one process.

    lease_seconds: seconds without a heartbeat after which they expire.
    tables: the tables of this kind of process.
    """

    def __init__(self, url: str, lease_seconds: float, tables: LeaseTables) -> None:
        self._store = StateDatabase(url, LOCK_WAIT_SECONDS)
        self._tables = tables
        self._lease_seconds = lease_seconds
        self._process = uuid4().hex
        self._has_read = False
        self._ids = frozenset[str]()
        self._expires = 0.0
        self._has_left = False

    def renew(self, item_ids: Collection[str]) -> HeldLeases | None:
        """Sends a heartbeat and takes free leases. None if the database is unavailable, and after `release_all`.

        item_ids: ids of all existing items.
        """
        if self._has_left:  # a late heartbeat would take everything again, for a process that ends
            return None
        started_at = time.monotonic()
        try:
            with self._store.writing(exclusive=True) as db:
                held_and_surplus = self._take(db, item_ids)
        except driver_errors():
            return self._unrenewed(started_at)
        held_ids, surplus_ids = held_and_surplus
        self._ids, self._has_read = held_ids, True
        # One second less than other processes assume, for drifting clocks and requests in flight.
        self._expires = started_at + self._lease_seconds - min(1.0, self._lease_seconds / 4)
        return HeldLeases(self._process, held_ids, surplus_ids, self._expires)

    def release(self, ids: Collection[str]) -> None:
        """Releases some leases. Raises: one of `driver_errors()`."""
        self._ids -= frozenset(ids)  # from now on another process may take them, also before the next heartbeat
        with self._store.writing(exclusive=True) as db:
            id_condition = db.in_list(self._tables.id)
            db.run(
                f"DELETE FROM {self._tables.lease} WHERE process = ? AND {id_condition}",
                (self._process, db.list_parameter(ids)),
            )

    def release_all(self) -> None:
        """Releases all leases for good: from now on `renew` takes none."""
        self._has_left = True
        try:
            with self._store.writing(exclusive=True) as db:
                for table in (self._tables.lease, self._tables.process):
                    db.run(f"DELETE FROM {table} WHERE process = ?", (self._process,))
        except driver_errors():
            pass  # they expire
        self.close()

    def close(self) -> None:
        """Closes the connection without releasing leases."""
        self._store.close()

    def _take(self, db: Database, item_ids: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
        process_table, lease_table = self._tables.process, self._tables.lease
        now: float = db.one(_SELECT_NOW[self._store.is_sqlite])[0]
        if self._has_read and not self._is_registered(db):
            self._process = uuid4().hex
        # Its own row first, so that a process that is late, but not replaced yet, keeps its leases.
        db.upsert(process_table, [(self._process, now + self._lease_seconds)])
        # Only a damaged store has text or bytes here; SQLite orders them above all numbers.
        db.run(
            f"DELETE FROM {process_table} WHERE until <= ? OR until > ?",
            (now, now + max(MAX_LEASE_SECONDS, self._lease_seconds)),
        )
        db.run(f"DELETE FROM {lease_table} WHERE process NOT IN (SELECT process FROM {process_table})")
        processes = sorted(str(row[0]) for row in db.all(f"SELECT process FROM {process_table}"))
        leases = dict(db.all(f"SELECT {self._tables.id}, process FROM {lease_table}"))
        current_ids = {id for id, holder in leases.items() if holder == self._process}
        free_ids = [id for id in item_ids if id not in leases and _preferred_process(id, processes) == self._process]
        if free_ids:
            db.insert(lease_table, [(id, self._process) for id in free_ids])
        held_ids = frozenset(current_ids.union(free_ids))
        return held_ids, frozenset(id for id in current_ids if _preferred_process(id, processes) != self._process)

    def _unrenewed(self, started_at: float) -> HeldLeases | None:
        """The leases as before, if nobody took one and only a long write blocks the heartbeat; else None."""
        try:
            with self._store.reading() as db:
                is_registered = self._is_registered(db)
        except driver_errors():
            return None
        # Another process can take a lease only by a write, and no write was possible meanwhile. If one begins now, the
        # next check notices it.
        if not is_registered or not self._store.is_sqlite:
            return None
        expires = max(self._expires, started_at + 2.0)
        return HeldLeases(self._process, self._ids, frozenset(), expires, is_recorded=False)

    def _is_registered(self, db: Database) -> bool:
        """Whether the process's own row still exists."""
        row = db.one(f"SELECT 1 FROM {self._tables.process} WHERE process = ?", (self._process,))
        return row is not None


def _preferred_process(id: str, processes: Collection[str]) -> str:
    """The process that should hold an item. All processes agree, and few items move when a process joins."""
    if len(processes) == 1:
        return next(iter(processes))
    return max(processes, key=lambda each: blake2b(f"{each} {id}".encode(), digest_size=8).digest())
