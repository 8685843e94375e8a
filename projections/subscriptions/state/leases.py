"""Which process works on what, such as subscriptions: one each, shared evenly, taken over after a crash (SUB-805).

Each process says again and again that it lives. What a silent one held is given up by the next that speaks, in a
transaction that runs alone, so no lease has two holders; who comes back late finds its own row gone.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final
from uuid import uuid4

from projections.database.drivers import Database
from projections.subscriptions.state.delivery_store import DRIVER_ERRORS, DeliveryStore
from projections.subscriptions.state.tables import LeaseTables

#: Seconds to wait for another writer of a SQLite file; a long import keeps everybody from writing, and a lease as well.
LOCK_WAIT_SECONDS: Final = 0.5
#: Seconds beyond which no process of any settings can have taken a lease.
MAX_LEASE_SECONDS: Final = 3600.0
#: The clock that all processes share.
_NOW: Final = {
    True: "SELECT (julianday('now') - 2440587.5) * 86400.0",
    False: "SELECT extract(epoch FROM clock_timestamp())::float8",
}


@dataclass(frozen=True, slots=True)
class HeldLeases:
    """held: ids of what is this process's. surplus: those of them that it should let another one have.

    until: the `time.monotonic()` up to which nobody else can have them. process: under which name; with a new one,
    whatever is held may have been another's in the meantime. written: whether the database took that down; False where
    a long write of another kept it from that, and nobody can have taken anything over meanwhile.
    """

    process: str
    held: frozenset[str]
    surplus: frozenset[str]
    until: float
    written: bool = True


class Leases:
    """The leases of one process. lease: seconds that they last without a word from it. tables: of its kind."""

    def __init__(self, url: str, lease: float, tables: LeaseTables) -> None:
        self._books = DeliveryStore(url, LOCK_WAIT_SECONDS)
        self._tables = tables
        self._lease = lease
        self._process = uuid4().hex
        self._known = False
        self._held = frozenset[str]()

    def beat(self, wanted: Collection[str]) -> HeldLeases | None:
        """Says that the process lives, and takes what is free. wanted: ids of all that there is.

        None where that cannot be said now.
        """
        began = time.monotonic()
        try:
            with self._books.writing(alone=True) as db:
                taken = self._taken(db, wanted)
        except DRIVER_ERRORS:
            return self._as_it_was(began)
        held, surplus = taken
        self._held, self._known = held, True
        # A second less than all others think, for clocks that run unevenly and for requests that are on their way.
        return HeldLeases(self._process, held, surplus, began + self._lease - min(1.0, self._lease / 4))

    def release(self, ids: Collection[str]) -> None:
        """Lets others have some."""
        with self._books.writing(alone=True) as db:
            among = db.named(self._tables.id)
            db.run(f"DELETE FROM {self._tables.lease} WHERE process = ? AND {among}", (self._process, db.listed(ids)))

    def end(self) -> None:
        """Lets others have all."""
        try:
            with self._books.writing(alone=True) as db:
                for table in (self._tables.lease, self._tables.process):
                    db.run(f"DELETE FROM {table} WHERE process = ?", (self._process,))
        except DRIVER_ERRORS:
            pass  # they run out by themselves
        self.close()

    def close(self) -> None:
        """Gives the connection back and says nothing to others."""
        self._books.close()

    def _taken(self, db: Database, wanted: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
        process, lease = self._tables.process, self._tables.lease
        now: float = db.one(_NOW[self._books.is_sqlite])[0]
        if self._known and not self._missed_by_nobody(db):
            self._process = uuid4().hex
        # First its own row, so that one who is late but whom nobody has missed yet keeps what it has.
        db.upsert(process, [(self._process, now + self._lease)])
        # Text and bytes, which only a damaged store has here, are above all numbers.
        db.run(f"DELETE FROM {process} WHERE until <= ? OR until > ?", (now, now + max(MAX_LEASE_SECONDS, self._lease)))
        db.run(f"DELETE FROM {lease} WHERE process NOT IN (SELECT process FROM {process})")
        processes = sorted(str(row[0]) for row in db.all(f"SELECT process FROM {process}"))
        leases = dict(db.all(f"SELECT {self._tables.id}, process FROM {lease}"))
        mine = {id for id, holder in leases.items() if holder == self._process}
        free = [id for id in wanted if id not in leases and _preferred_process(id, processes) == self._process]
        if free:
            db.insert(lease, [(id, self._process) for id in free])
        held = frozenset(mine.union(free))
        return held, frozenset(id for id in mine if _preferred_process(id, processes) != self._process)

    def _as_it_was(self, began: float) -> HeldLeases | None:
        """What was held is held still, where nobody has taken it and all that is amiss is a long write."""
        try:
            with self._books.reading() as db:
                known = self._missed_by_nobody(db)
        except DRIVER_ERRORS:
            return None
        # To take leases over is to write, which nobody could since; what begins in a moment is noticed in another.
        if not known or not self._books.is_sqlite:
            return None
        return HeldLeases(self._process, self._held, frozenset(), began + 2.0, written=False)

    def _missed_by_nobody(self, db: Database) -> bool:
        """Whether the process's own row is still there."""
        found = db.one(f"SELECT 1 FROM {self._tables.process} WHERE process = ?", (self._process,))
        return found is not None


def _preferred_process(id: str, processes: Collection[str]) -> str:
    """The process that should have something: every process finds the same one, and few move when one comes."""
    if len(processes) == 1:
        return next(iter(processes))
    return max(processes, key=lambda each: blake2b(f"{each} {id}".encode(), digest_size=8).digest())
