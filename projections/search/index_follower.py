"""Keeps the search index at the end of the log, in a thread of a server."""

from __future__ import annotations

import logging
import time
from threading import Event, Thread
from typing import Final

from sqlalchemy.exc import DBAPIError

from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.store_lost import StoreLost
from annals.domain.errors.problems import ServerBusy
from annals.projections.search.index_writer import IndexWriter
from annals.projections.search.leadership import Leadership
from annals.projections.search.segments import FAN_OUT, IDLE_FAN_OUT
from annals.projections.search.tables import UnreadableIndex

#: Seconds between two looks at the log for commits of other processes.
POLL_SECONDS: Final = 0.5
#: Seconds from a commit to the next look, so that commits that follow each other are written together.
GATHER_SECONDS: Final = 0.4
#: Seconds from the last commit of this process to the merges for which there is time then.
IDLE_SECONDS: Final = 5.0
#: Seconds from a failure to the next attempt, at first and at most.
FIRST_RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 30.0
#: Seconds that a stopping server waits for a page that is being written.
_GRACE_SECONDS: Final = 10.0
_LOG: Final = logging.getLogger("annals.search")


class IndexFollower:
    """Writes the index from `start` to `stop`, while no other process does; it also observes commits."""

    def __init__(self, writer: IndexWriter, leadership: Leadership) -> None:
        self._writer = writer
        self._leadership = leadership
        self._woken, self._stopped = Event(), Event()
        self._last_woken = time.monotonic()
        self._merged = 0  # entities that merges have written since the tables were packed
        self._thread = Thread(target=self._run, name="annals-search", daemon=True)

    def start(self) -> None:
        """Starts the thread and returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the page that it writes."""
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_GRACE_SECONDS)

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Makes the index follow soon; see `annals.commands.command_bus.CommitListener`."""
        self._woken.set()

    def _run(self) -> None:
        pause, has_failed = FIRST_RETRY_SECONDS, False
        while not self._stopped.is_set():
            try:
                self._follow_or_repair()
            except StoreLost:
                pass  # what finds that logs it once, and only a restart ends it
            except _database_errors() as error:
                # The first failure may be that of a database that is busy or restarts; it is tried again.
                (_LOG.warning if has_failed else _LOG.info)("the search index waits for the database: %s", error)
            except ServerBusy as error:  # a server that stops checks no documents any more
                _LOG.info("the search index is not written: %s", error.detail)
            except Exception:
                if not self._stopped.is_set():  # a server that stops closes what is used here
                    _LOG.exception("the search index cannot be written; trying again")
            else:
                pause, has_failed = FIRST_RETRY_SECONDS, False
                continue
            has_failed = True
            self._stopped.wait(pause)
            pause = min(2 * pause, LONGEST_RETRY_SECONDS)
        self._leadership.release()
        self._writer.store.close()

    def _follow_or_repair(self) -> None:
        try:
            self._follow()
        except UnreadableIndex as error:
            _LOG.error("the search index is damaged, and is written again: %s", error)
            self._writer.write_all()

    def _follow(self) -> None:
        """Writes what there is to write, and waits for more."""
        if self._leadership.is_held():
            while not self._stopped.is_set() and self._writer.catch_up():
                self._merged += self._writer.merge()
            is_idle = time.monotonic() - self._last_woken > IDLE_SECONDS
            fan_out = IDLE_FAN_OUT if is_idle else FAN_OUT
            while not self._stopped.is_set() and (merged := self._writer.merge(fan_out)):
                self._merged += merged
            if is_idle and self._merged and self._writer.is_worth_packing(self._merged):
                self._writer.pack()
                self._merged = 0
        if self._woken.wait(POLL_SECONDS):
            self._woken.clear()
            self._last_woken = time.monotonic()
            time.sleep(GATHER_SECONDS)


def _database_errors() -> tuple[type[Exception], ...]:
    return (*driver_errors(), DBAPIError)
