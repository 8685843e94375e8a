"""Replication beside a server: a thread for each link that is this process's to run."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import Final

from domain.errors.http_errors import Diverged
from domain.errors.problems import Problem
from domain.replication.link import EVENTS, Link
from projections.replication import tables
from projections.replication.link_state import NOTIFIED_FACT
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.link_workers import LINK_WORKERS
from projections.replication.store_outage import DATABASE_ERRORS, StoreOutage, error_text
from projections.subscriptions.state.leases import Leases

#: Seconds between looks at which links there are, and at which of them are this process's.
POLL_SECONDS: Final = 1.0
#: Seconds between looks at most while the database cannot be used: less than a lease lasts.
_PATIENT: Final = 5.0
#: Seconds that a lease lasts without a word from its process.
LEASE_SECONDS: Final = 15.0
#: Seconds from one attempt that failed to the next, at first and at most.
FIRST_RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 60.0
#: Seconds after which an attempt that fails is the first again: it went well, or has waited long enough by itself.
_STEADY: Final = 5.0
#: Seconds that the end of a server waits for what runs.
_GRACE: Final = 15.0
#: Seconds that what is asked for at the end may take.
_PROMPT: Final = 1.5
_LOCKED: Final = "it is locked, or out of reach"
_LOG: Final = logging.getLogger("annals.replication")


class ReplicationService:
    """Runs the links of one store from `start` to `stop`; an observer of commits as well."""

    def __init__(
        self, url: str, tools: LinkWorkerContext, links: Callable[[], Sequence[Link]], lease: float = LEASE_SECONDS
    ) -> None:
        """links: those that there are; asked from this service's own thread."""
        self._tools = tools
        self._links = links
        self._leases = Leases(url, lease, tables.LEASES)
        self._running: dict[str, _LinkThread] = {}
        self._lock = Lock()
        self._ended = Event()
        self._outage = StoreOutage(_LOG)
        self._thread = Thread(target=self._run, name="annals-replication", daemon=True)

    def start(self) -> None:
        """Begins; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Ends, once what is being recorded is."""
        self._ended.set()
        self._thread.join(_GRACE)
        self._tools.states.close()

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Something was committed here; see `commands.command_bus.CommitListener`."""
        for running in self._all():
            running.tools.woken.set()

    def wake(self, link: str) -> bool:
        """Has a link look at the other registry now; False where it does not run here. link: its id."""
        with self._lock:
            running = self._running.get(link)
        if running is not None:
            running.wake()
        return running is not None

    def _all(self) -> list[_LinkThread]:
        with self._lock:
            return list(self._running.values())

    def _run(self) -> None:
        pause = POLL_SECONDS
        while not self._ended.is_set():
            try:
                pause = POLL_SECONDS if self._look() else min(2 * pause, _PATIENT)
            except DATABASE_ERRORS as error:
                self._outage.failed(error_text(error))
                pause = min(2 * pause, _PATIENT)
            except Exception:
                _LOG.exception("links cannot be looked up")
                pause = min(2 * pause, LONGEST_RETRY_SECONDS)
            self._ended.wait(pause)
        self._stopped({})
        self._leases.end()

    def _look(self) -> bool:
        """Has those links run, as they are now, that are this process's, and no others. False where that cannot be said
        because the database is not to be written to.
        """
        links = {link.id: link for link in self._links()}
        wanted = {id: link for id, link in links.items() if _is_runnable(link)}
        held = self._leases.beat(list(wanted))
        if held is None:
            self._outage.failed(_LOCKED)
            return False
        if held.surplus:
            self._leases.release(held.surplus)
        if held.written:
            self._outage.ended()
        else:
            self._outage.failed(_LOCKED)
        kept = {id: link for id, link in wanted.items() if id in held.held - held.surplus}
        for link in self._stopped(kept):
            there = links.get(link.id, link)
            if link.id not in links or (there != link and there.epoch <= link.epoch):  # gone, or gone and made again
                self._tools.states.forget(link.id)
        self._begin(kept)
        self._hear()
        return True

    def _hear(self) -> None:
        """Wakes the links that events came for which another process has taken."""
        for running in self._running.values():
            if running.link.mode == EVENTS:
                told = self._tools.states.read(running.link.id).facts.get(NOTIFIED_FACT)
                if told != running.told:
                    running.told = told
                    running.wake()

    def _stopped(self, wanted: dict[str, Link]) -> list[Link]:
        """Ends all but these; gives those that it has ended."""
        ending = [running for id, running in self._running.items() if running.link != wanted.get(id)]
        with self._lock:
            for running in ending:
                del self._running[running.link.id]
        for running in ending:
            running.end()
        for running in ending:
            running.join()
        return [running.link for running in ending]

    def _begin(self, wanted: dict[str, Link]) -> None:
        """Has these run as well."""
        for id, link in wanted.items():
            if id not in self._running:
                running = _LinkThread(link, self._tools.fresh(), self._outage)
                with self._lock:
                    self._running[id] = running
                running.start()


def _is_runnable(link: Link) -> bool:
    return link.enabled and not link.promoted and (link.dialect, link.mode) in LINK_WORKERS


class _LinkThread:
    """One link in a thread of its own, begun anew after each failure."""

    def __init__(self, link: Link, tools: LinkWorkerContext, outage: StoreOutage) -> None:
        self.link = link
        self.tools = tools
        self._outage = outage
        self.told: object = None
        self._thread = Thread(target=self._run, name=f"annals-link-{link.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Has it end; what is being recorded still is."""
        self.tools.stopping.set()
        self.wake()
        for remote in list(self.tools.remotes):
            remote.cut()

    def wake(self) -> None:
        """Has it look at the other registry now."""
        self.tools.woken.set()
        self.tools.told.set()

    def join(self) -> None:
        """Waits for its end. What it has asked the other registry for since is not waited for."""
        until = time.monotonic() + _GRACE
        self._thread.join(_PROMPT)
        while self._thread.is_alive() and time.monotonic() < until:
            self.end()
            self._thread.join(_PROMPT)

    def _run(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while not self.tools.stopping.is_set():
            began = time.monotonic()
            try:
                LINK_WORKERS[self.link.dialect, self.link.mode](self.link, self.tools).run()
            except Exception as error:
                self._failed(error)
            if time.monotonic() - began > _STEADY:
                pause = FIRST_RETRY_SECONDS
            self.tools.stopping.wait(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_RETRY_SECONDS)

    def _failed(self, error: Exception) -> None:
        if self.tools.stopping.is_set():
            return
        if isinstance(error, DATABASE_ERRORS):
            self._outage.failed(error_text(error))
            return
        said = error.text() if isinstance(error, Problem) else " ".join(str(error).split()) or type(error).__name__
        _LOG.warning("the link %s: %s", self.link.id, said)
        try:
            self.tools.states.note(
                self.link.id, error=said, failed=time.time(), diverged=True if isinstance(error, Diverged) else None
            )
        except DATABASE_ERRORS as failure:
            self._outage.failed(error_text(failure))
