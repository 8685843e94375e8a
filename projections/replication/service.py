"""The replication service of a server: one thread for each link whose lease this process holds."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final

from annals.domain.errors.http_errors import Diverged
from annals.domain.errors.problems import Problem
from annals.domain.replication.link import EVENTS, Link
from annals.projections.replication import tables
from annals.projections.replication.link_state import NOTIFIED_KEY
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.link_workers import LINK_WORKERS
from annals.projections.replication.remote.secret_mask import SecretMask
from annals.projections.replication.store_outage import StoreOutage, database_errors, error_text
from annals.projections.subscriptions.state.leases import Leases

#: Seconds between checks which links exist, and which of them this process holds.
POLL_SECONDS: Final = 1.0
#: Longest pause in seconds between checks while the database is unavailable; shorter than a lease.
_LONGEST_POLL_SECONDS: Final = 5.0
#: Seconds without a heartbeat after which a lease expires.
LEASE_SECONDS: Final = 15.0
#: Seconds from a failed attempt to the next, at first and at most.
FIRST_RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 60.0
#: Seconds after which a failed attempt resets the retry delay: it worked for a while, or waited long enough itself.
_STEADY_SECONDS: Final = 5.0
#: Seconds that a stopping server waits for running links.
_GRACE_SECONDS: Final = 15.0
#: Seconds that a link's last requests to the other registry may take while it ends.
_LAST_REQUEST_SECONDS: Final = 1.5
_LOCKED_MESSAGE: Final = "it is locked or cannot be reached"
_LOG: Final = logging.getLogger("annals.replication")


class ReplicationService:
    """Runs the links of one store from `start` to `stop`; it also observes commits."""

    def __init__(
        self,
        url: str,
        context: LinkWorkerContext,
        read_links: Callable[[], Sequence[Link]],
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """read_links: returns all links; called from this service's own thread."""
        self._context = context
        self._read_links = read_links
        self._leases = Leases(url, lease_seconds, tables.LEASES)
        self._running: dict[str, _LinkThread] = {}
        self._lock = Lock()
        self._stopped = Event()
        self._outage = StoreOutage(_LOG)
        self._thread = Thread(target=self._run, name="annals-replication", daemon=True)

    def start(self) -> None:
        """Starts the thread and returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stops after running recordings have finished."""
        self._stopped.set()
        self._thread.join(_GRACE_SECONDS)
        self._context.states.close()

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Wakes the links after a commit; see `annals.commands.command_bus.CommitListener`."""
        for link_thread in self._link_threads():
            link_thread.context.woken.set()

    def wake(self, link: str) -> bool:
        """Makes a link check the other registry now. False if the link does not run in this process. link: its id."""
        with self._lock:
            link_thread = self._running.get(link)
        if link_thread is not None:
            link_thread.wake()
        return link_thread is not None

    def _link_threads(self) -> list[_LinkThread]:
        with self._lock:
            return list(self._running.values())

    def _run(self) -> None:
        pause = POLL_SECONDS
        while not self._stopped.is_set():
            try:
                pause = POLL_SECONDS if self._assign_links() else min(2 * pause, _LONGEST_POLL_SECONDS)
            except database_errors() as error:
                self._outage.report_failure(error_text(error))
                pause = min(2 * pause, _LONGEST_POLL_SECONDS)
            except Exception:
                _LOG.exception("links cannot be read from the database; trying again")
                pause = min(2 * pause, LONGEST_RETRY_SECONDS)
            self._stopped.wait(pause)
        self._stop_others({})
        self._leases.release_all()

    def _assign_links(self) -> bool:
        """Starts and stops links, so that exactly the held ones run with their current settings.

        False if leases are unknown because the database cannot be written.
        """
        links = {link.id: link for link in self._read_links()}
        runnable_links = {id: link for id, link in links.items() if _is_runnable(link)}
        leases = self._leases.renew(list(runnable_links))
        if leases is None:
            self._outage.report_failure(_LOCKED_MESSAGE)
            return False
        if leases.surplus_ids:
            self._leases.release(leases.surplus_ids)
        if leases.is_recorded:
            self._outage.report_recovery()
        else:
            self._outage.report_failure(_LOCKED_MESSAGE)
        held_links = {id: link for id, link in runnable_links.items() if id in leases.ids - leases.surplus_ids}
        for link in self._stop_others(held_links):
            current_link = links.get(link.id, link)
            if link.id not in links or (
                current_link != link and current_link.epoch <= link.epoch
            ):  # deleted, or since created again
                self._context.states.delete(link.id)
        self._start_links(held_links)
        self._wake_notified()
        return True

    def _wake_notified(self) -> None:
        """Wakes links for which another process has received events."""
        for link_thread in self._running.values():
            if link_thread.link.mode == EVENTS:
                notified_at = self._context.states.read(link_thread.link.id).status.get(NOTIFIED_KEY)
                if notified_at != link_thread.last_notified:
                    link_thread.last_notified = notified_at
                    link_thread.wake()

    def _stop_others(self, kept_links: dict[str, Link]) -> list[Link]:
        """Stops all links except these. Returns those it has stopped."""
        ending_threads = [
            link_thread for id, link_thread in self._running.items() if link_thread.link != kept_links.get(id)
        ]
        with self._lock:
            for link_thread in ending_threads:
                del self._running[link_thread.link.id]
        for link_thread in ending_threads:
            link_thread.stop()
        for link_thread in ending_threads:
            link_thread.join()
        return [link_thread.link for link_thread in ending_threads]

    def _start_links(self, held_links: dict[str, Link]) -> None:
        """Starts those of these links that do not run yet."""
        for id, link in held_links.items():
            if id not in self._running:
                link_thread = _LinkThread(link, self._context.for_link(), self._outage)
                with self._lock:
                    self._running[id] = link_thread
                link_thread.start()


def _is_runnable(link: Link) -> bool:
    return link.is_enabled and not link.is_promoted and (link.dialect, link.mode) in LINK_WORKERS


class _LinkThread:
    """One link in its own thread, restarted after each failure."""

    def __init__(self, link: Link, context: LinkWorkerContext, outage: StoreOutage) -> None:
        self.link = link
        self.context = context
        self._outage = outage
        self.last_notified: object = None
        self._thread = Thread(target=self._run, name=f"annals-link-{link.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Makes it end; a running recording still finishes."""
        self.context.stopping.set()
        self.wake()
        for remote in list(self.context.remotes):
            remote.abort_requests()

    def wake(self) -> None:
        """Makes it check the other registry now."""
        self.context.woken.set()
        self.context.event_received.set()

    def join(self) -> None:
        """Waits for its end. Aborts requests to the other registry that started since `stop`."""
        deadline = time.monotonic() + _GRACE_SECONDS
        self._thread.join(_LAST_REQUEST_SECONDS)
        while self._thread.is_alive() and time.monotonic() < deadline:
            self.stop()
            self._thread.join(_LAST_REQUEST_SECONDS)

    def _run(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while not self.context.stopping.is_set():
            started_at = time.monotonic()
            try:
                LINK_WORKERS[self.link.dialect, self.link.mode](self.link, self.context).run()
            except Exception as error:
                self._report_failure(error)
            if time.monotonic() - started_at > _STEADY_SECONDS:
                pause = FIRST_RETRY_SECONDS
            self.context.stopping.wait(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_RETRY_SECONDS)

    def _report_failure(self, error: Exception) -> None:
        if self.context.stopping.is_set():
            return
        if isinstance(error, database_errors()):
            self._outage.report_failure(error_text(error))
            return
        message = error.text() if isinstance(error, Problem) else " ".join(str(error).split()) or type(error).__name__
        try:
            message = self._without_secrets(message)
            _LOG.warning("the link %s: %s", self.link.id, message)
            self.context.states.update(
                self.link.id, error=message, failed=time.time(), diverged=True if isinstance(error, Diverged) else None
            )
        except database_errors() as failure:
            self._outage.report_failure(error_text(failure))

    def _without_secrets(self, message: str) -> str:
        """A message in which the other registry, or a broker, may have repeated the link's secrets."""
        with suppress(LookupError):  # then nobody was sent them
            return SecretMask(self.context.credential(self.link)).hide(message)
        return message
