"""The API keys and the grants in the log that are in force, at most half a second old (ACC-47, ACC-65)."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from annals.commands.store.clock import Clock, utc_now
from annals.domain.access import grants, keys
from annals.domain.access.grants import Grant
from annals.domain.access.keys import ApiKey
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool

#: Seconds for which what was read is taken to be current.
FRESH_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class AccessEntries:
    """Keys by id and grants by subject. positions: of the last events of any key and of any grant."""

    positions: tuple[int, int] = (0, 0)
    keys: Mapping[str, ApiKey] = field(default_factory=dict)
    grants: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)

    def grants_to(self, subjects: Iterable[str], now: datetime) -> Iterator[Grant]:
        """The grants to some subjects that have not expired."""
        return (grant for subject in subjects for grant in self.grants.get(subject, ()) if grant.holds_at(now))


class StoredAccess:
    """Reads the entries again when they are old and the log has others. It has none before `open`.

    now: the time by which keys and grants expire. clock: the time by which what was read gets old.
    """

    def __init__(self, now: Clock = utc_now, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._clock = clock
        self._readers: ViewPool | None = None
        self._entries = AccessEntries()
        self._read_at = 0.0
        self._changes = 0  # that this process has made
        self._lock = asyncio.Lock()
        # Of its own, because each request waits for it; all other threads may wait for the database.
        self._thread = ThreadPoolExecutor(1, "annals-access")

    def open(self, readers: ViewPool) -> None:
        """Begins to read."""
        self._readers = readers
        self.invalidate()

    def invalidate(self) -> None:
        """Makes the next request read the log, because this process has changed an entry."""
        self._changes += 1
        self._read_at = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether the entries are young enough to use."""
        return self._readers is None or (self._read_at > 0 and self._clock() - self._read_at < FRESH_SECONDS)

    async def current(self) -> AccessEntries:
        """The entries. Raises: one of `driver_errors()`."""
        if not self.is_fresh:
            async with self._lock:
                if not self.is_fresh:
                    await asyncio.get_running_loop().run_in_executor(self._thread, self.refresh)
        return self._entries

    def refresh(self) -> AccessEntries:
        """The entries, which are read if they are old. Blocks. Raises: one of `driver_errors()`."""
        if self._readers is not None and not self.is_fresh:
            read_at, changes = self._clock(), self._changes
            self._entries = read_entries(self._readers.reserved_view(), self._entries)
            self._read_at = read_at
            if changes != self._changes:  # it may have been read before the change
                self._read_at = 0.0
        return self._entries


def read_entries(view: View, known: AccessEntries) -> AccessEntries:
    """The entries as the log has them. known: returned as they are if no event is newer."""
    stored_keys, stored_grants = view.outside_tree(keys.COLLECTION), view.outside_tree(grants.COLLECTION)
    positions = stored_keys.last_position(), stored_grants.last_position()
    if positions == known.positions:
        return known
    by_subject: dict[str, list[Grant]] = defaultdict(list)
    for grant in map(Grant.from_entity, stored_grants.all()):
        by_subject[grant.subject].append(grant)
    return AccessEntries(
        positions,
        {key.id: key for key in map(ApiKey.from_entity, stored_keys.all())},
        {subject: tuple(found) for subject, found in by_subject.items()},
    )
