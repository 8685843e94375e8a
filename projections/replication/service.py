"""The replication service of a server: one thread for each link whose lease this process holds."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final

from annals.domain.errors.http_errors import Diverged, NotReceiving
from annals.domain.errors.problems import NotFound, Problem
from annals.domain.replication.link import EVENTS, Link
from annals.projections.replication import tables
from annals.projections.replication.link_state import NOTIFIED_KEY
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.link_workers import LINK_WORKERS
from annals.projections.replication.refusals import reason_of
from annals.projections.replication.remote.secret_mask import SecretMask
from annals.projections.replication.store_outage import StoreOutage, database_errors, error_text
from annals.projections.subscriptions.state.leases import HeldLeases, Leases

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
#: Seconds that a stopping server waits for running links, and then for the release of their leases.
_GRACE_SECONDS: Final = 15.0
_RELEASE_SECONDS: Final = 2.0
#: Seconds that a link's last requests to the other registry may take while it ends.
_LAST_REQUEST_SECONDS: Final = 1.5
#: Seconds between checks for expired leases and late requests.
_WATCH_SECONDS: Final = 0.5
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
        self._held: HeldLeases | None = None
        self._running: dict[str, _LinkThread] = {}
        # Links that must end but may still work, by id. Until they have ended, they are neither started nor released.
        self._ending: dict[str, _LinkThread] = {}
        self._lock = Lock()
        self._stopped, self._woken, self._finished = Event(), Event(), Event()
        self._outage = StoreOutage(_LOG)
        self._thread = Thread(target=self._run, name="annals-replication", daemon=True)
        self._watcher = Thread(target=self._watch, name="annals-replication-watch", daemon=True)

    def start(self) -> None:
        """Starts the threads and returns at once."""
        self._thread.start()
        self._watcher.start()

    def stop(self) -> None:
        """Stops after running recordings have finished, or after a limited time."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(_GRACE_SECONDS + _RELEASE_SECONDS)
        self._context.states.close()

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Wakes the links after a commit; see `annals.commands.command_bus.CommitListener`."""
        for link_thread in self._link_threads():
            link_thread.context.woken.set()

    def links_changed(self) -> None:
        """Makes the service start and stop links now, as somebody has changed some; it would notice soon anyway."""
        self._woken.set()

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
            self._woken.wait(pause)
            self._woken.clear()
        try:
            self._shut_down()
        finally:
            self._finished.set()

    def _assign_links(self) -> bool:
        """Starts and stops links, so that exactly the held ones run with their current settings.

        It waits for no link to end: other processes take all links of a process that sends no heartbeats.
        False if leases are unknown because the database cannot be written.
        """
        links = {link.id: link for link in self._read_links()}
        runnable_links = {id: link for id, link in links.items() if _is_runnable(link)}
        leases = self._leases.renew(list(runnable_links))
        if leases is None:
            self._outage.report_failure(_LOCKED_MESSAGE)
            return False
        self._held = leases
        if leases.is_recorded:
            self._outage.report_recovery()
        else:
            self._outage.report_failure(_LOCKED_MESSAGE)
        held_links = {id: link for id, link in runnable_links.items() if id in leases.ids - leases.surplus_ids}
        self._stop_others(held_links)
        self._remove_ended(links)
        if releasable_ids := leases.surplus_ids - self._ending.keys():
            self._leases.release(releasable_ids)
        self._start_links(held_links)
        self._wake_notified()
        return True

    def _wake_notified(self) -> None:
        """Wakes links for which another process has received events."""
        for link_thread in self._link_threads():
            if link_thread.link.mode == EVENTS:
                notified_at = self._context.states.read(link_thread.link.id).status.get(NOTIFIED_KEY)
                if notified_at != link_thread.last_notified:
                    link_thread.last_notified = notified_at
                    link_thread.wake()

    def _stop_others(self, kept_links: dict[str, Link]) -> None:
        """Makes all links except these end, and returns at once."""
        with self._lock:
            others = {
                id: link_thread
                for id, link_thread in self._running.items()
                if link_thread.has_ended or link_thread.link != kept_links.get(id)
            }
            for id in others:
                del self._running[id]
            self._ending |= others
        for link_thread in others.values():
            link_thread.stop()

    def _remove_ended(self, links: dict[str, Link]) -> None:
        """Allows links that have ended to be started and released, and deletes the states of deleted ones."""
        for id, link_thread in list(self._ending.items()):
            if link_thread.has_ended:
                if _is_deleted(link_thread.link, links.get(id)):
                    self._context.states.delete(id)
                with self._lock:
                    del self._ending[id]

    def _start_links(self, held_links: dict[str, Link]) -> None:
        """Starts those of these links that do not run yet. One that is still ending is started after it has ended."""
        for id, link in held_links.items():
            with self._lock:
                if id not in self._running and id not in self._ending:
                    link_thread = _LinkThread(link, self._context.for_link(), self._outage, self._woken.set)
                    link_thread.start()
                    self._running[id] = link_thread

    def _shut_down(self) -> None:
        """Waits until all links have ended, for a limited time, and releases the leases of those that have."""
        deadline = time.monotonic() + _GRACE_SECONDS
        self._stop_others({})
        while (unended_ids := self._unended_ids()) and time.monotonic() < deadline:
            if self._held is not None and self._held.expires < deadline:  # no other process may run them yet
                self._held = self._leases.renew([]) or self._held
            self._woken.wait(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
            self._woken.clear()
        if not unended_ids:
            self._leases.release_all()
        elif self._held is not None:
            with suppress(*database_errors()):  # then all of them expire
                self._leases.release(self._held.ids - unended_ids)
            self._leases.close()

    def _unended_ids(self) -> set[str]:
        return {id for id, link_thread in self._ending.items() if not link_thread.has_ended}

    def _watch(self) -> None:
        """Stops all links when their leases have expired, and aborts late requests of those that end.

        It has its own thread, because a heartbeat may wait long for a database that does not answer.
        """
        while not self._finished.wait(_WATCH_SECONDS):
            try:
                if self._held is not None and time.monotonic() >= self._held.expires:
                    self._stop_others({})
                with self._lock:
                    ending_threads = list(self._ending.values())
                for link_thread in ending_threads:
                    link_thread.abort_late_requests()
            except Exception:
                _LOG.exception("links that must end cannot be stopped; trying again")


def _is_runnable(link: Link) -> bool:
    return link.is_enabled and not link.is_promoted and (link.dialect, link.mode) in LINK_WORKERS


def _is_deleted(link: Link, current_link: Link | None) -> bool:
    """Whether a link was deleted, and perhaps created again. current_link: the link that has its id now."""
    return current_link is None or (current_link != link and current_link.epoch <= link.epoch)


class _LinkThread:
    """One link in its own thread, restarted after each failure.

    on_end: called when it has ended after `stop`.
    """

    def __init__(
        self, link: Link, context: LinkWorkerContext, outage: StoreOutage, on_end: Callable[[], object]
    ) -> None:
        self.link = link
        self.context = context
        self._outage = outage
        self._on_end = on_end
        self._ended = Event()
        self._aborted_at = 0.0
        self.last_notified: object = None
        self._thread = Thread(target=self._run, name=f"annals-link-{link.id}", daemon=True)

    @property
    def has_ended(self) -> bool:
        """Whether it does nothing any more, for whatever reason."""
        return self._ended.is_set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Makes it end, and returns at once; a running recording still finishes."""
        self._aborted_at = time.monotonic()
        self.context.stopping.set()
        self.wake()
        for remote in list(self.context.remotes):
            remote.abort_requests()

    def wake(self) -> None:
        """Makes it check the other registry now."""
        self.context.woken.set()
        self.context.event_received.set()

    def abort_late_requests(self) -> None:
        """Aborts requests to the other registry that started since `stop`, and may be as old as they can get."""
        if not self.has_ended and time.monotonic() - self._aborted_at >= _LAST_REQUEST_SECONDS:
            self.stop()

    def _run(self) -> None:
        try:
            self._run_workers()
        finally:
            self._ended.set()
            if self.context.stopping.is_set():
                self._on_end()

    def _run_workers(self) -> None:
        pause = FIRST_RETRY_SECONDS
        while not self.context.stopping.is_set():
            started_at = time.monotonic()
            try:
                LINK_WORKERS[self.link.dialect, self.link.mode](self.link, self.context).run()
            except Exception as error:
                self._try_report(error)
            if time.monotonic() - started_at > _STEADY_SECONDS:
                pause = FIRST_RETRY_SECONDS
            self.context.stopping.wait(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_RETRY_SECONDS)

    def _try_report(self, error: Exception) -> None:
        """Reports a failure. The link goes on, even if that fails too."""
        try:
            self._report_failure(error)
        except Exception:
            _LOG.exception("the link %s fails, and its status cannot show why", self.link.id)

    def _report_failure(self, error: Exception) -> None:
        if self.context.stopping.is_set() or self._is_about_its_end(error):
            return
        if isinstance(error, database_errors()):
            self._outage.report_failure(error_text(error))
            return
        message = (
            reason_of(error) if isinstance(error, Problem) else " ".join(str(error).split()) or type(error).__name__
        )
        try:
            message = self._without_secrets(message)
            _LOG.warning("the link %s: %s", self.link.id, message)
            self.context.states.update(
                self.link.id, error=message, failed=time.time(), diverged=True if isinstance(error, Diverged) else None
            )
        except database_errors() as failure:
            self._outage.report_failure(error_text(failure))

    def _is_about_its_end(self, error: Exception) -> bool:
        """Whether an error only says that the link was paused, promoted or deleted. Then the service stops it soon."""
        return isinstance(error, NotReceiving) or (isinstance(error, NotFound) and error.subject == self.link.xid)

    def _without_secrets(self, message: str) -> str:
        """A message in which the other registry, or a broker, may have repeated the link's secrets."""
        with suppress(LookupError):  # then nobody was sent them
            return SecretMask(self.context.credential(self.link)).hide(message)
        return message
