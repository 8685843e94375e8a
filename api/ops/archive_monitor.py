"""Whether the archive of the log is complete: looked up at most once a minute, and never by the caller's thread."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from threading import Lock, Thread
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annals.commands.store.archive.state_reader import archive_files, archived_segments, query_of
from annals.commands.store.log import Store
from annals.domain.errors.http_errors import ArchiveUnavailable

_LOG: Final = logging.getLogger("annals.archive")
#: Seconds for which a result counts. A look is one listing of the archive's folder.
CHECK_SECONDS: Final = 60.0
#: Seconds that the end of the server waits for a look.
_CLOSE_SECONDS: Final = 2.0


class ArchiveHealth(NamedTuple):
    """The result of a look. last: the archive's last position, 0 without one. problem: in words; None if complete."""

    last: int = 0
    problem: str | None = None


class ArchiveMonitor:
    """Looks at the archive of a store. Thread-safe."""

    def __init__(self, store: Store, check_seconds: float = CHECK_SECONDS) -> None:
        self._store = store
        self._check_seconds = check_seconds
        self._lock = Lock()
        self._health = ArchiveHealth()
        self._next_check = 0.0
        self._thread: Thread | None = None

    def health(self) -> ArchiveHealth:
        """The last result. Starts another look if that is too old: an object store that hangs delays no caller."""
        with self._lock:
            is_due, now = time.monotonic() >= self._next_check, time.monotonic()
            if is_due:
                self._next_check = now + self._check_seconds
        if is_due:
            self._thread = Thread(target=self.check, name="annals-archive-check", daemon=True)
            self._thread.start()
        return self._health

    def close(self) -> None:
        """Waits for a look in progress, but not for long: an object store may hang."""
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def check(self) -> ArchiveHealth:
        """The result of a look now; a change of it is logged."""
        try:
            health = self._look()
        except Exception as error:  # the database fails, which other checks report
            _LOG.debug("the archive could not be looked up: %s", error)
            return self._health
        if health.problem != self._health.problem:
            if health.problem:
                _LOG.error(
                    "%s; reads of the past that need it are refused; current reads and writes go on", health.problem
                )
            else:
                _LOG.warning("the archive is complete again")
        self._health = health
        return health

    def _look(self) -> ArchiveHealth:
        with self._store.engine.connect() as connection:
            segments = archived_segments(query_of(connection))
        if not segments:
            return ArchiveHealth()
        try:
            missing_segments = archive_files(segments[-1]).missing(segments)
        except ArchiveUnavailable as error:
            return ArchiveHealth(
                segments[-1].last,
                f"the archive {segments[-1].place} cannot be reached: {error.arguments['error_detail']}",
            )
        if not missing_segments:
            return ArchiveHealth(segments[-1].last)
        first = missing_segments[0]
        return ArchiveHealth(
            segments[-1].last,
            f"the archive {first.place} lacks {len(missing_segments)} of {len(segments)} files, the first with the"
            f" positions {first.first} to {first.last}",
        )


class ArchiveCollector(Collector):
    """The metrics of the archive."""

    def __init__(self, monitor: ArchiveMonitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[GaugeMetricFamily]:
        health = self._monitor.health()
        yield GaugeMetricFamily(
            "annals_archive_position", "Last position in the archive of the log, 0 without one.", value=health.last
        )
        yield GaugeMetricFamily(
            "annals_archive_available",
            "1 unless the archive of the log lacks files or cannot be reached, as of the last look.",
            value=float(health.problem is None),
        )
