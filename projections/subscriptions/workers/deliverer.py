"""The deliverer: all deliveries of one process. It reads the log, matches events, and writes delivery state.

Everything runs in one event loop; blocking calls to the store run in threads, one for each purpose. The log is read for
many subscriptions at once: first for those at its end, then one chunk for the subscription that is furthest behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.store_lost import StoreLost
from annals.projections.database import state_database
from annals.projections.database.state_database import StateDatabase
from annals.projections.events.event_families import EventFamily
from annals.projections.subscriptions.event_messages import EventMessage, EventMessageReader
from annals.projections.subscriptions.ports import LEASE_SECONDS, DeliveryPorts
from annals.projections.subscriptions.state import tables
from annals.projections.subscriptions.state.delivery_record import SavedDelivery
from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange
from annals.projections.subscriptions.workers.event_dispatcher import EventDispatcher
from annals.projections.subscriptions.workers.housekeeping import Housekeeping
from annals.projections.subscriptions.workers.lease_manager import GRACE_SECONDS, LeaseManager
from annals.projections.subscriptions.workers.metrics import DeliveryMetrics
from annals.projections.subscriptions.workers.state_writer import DeliveryProgress, StateWriter
from annals.projections.subscriptions.workers.subscription_follower import SubscriptionFollower
from annals.projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from annals.projections.subscriptions.workers.threads import ReaderThread, WorkerThread

T = TypeVar("T")

#: Seconds between polls of the log, for commits of other processes.
POLL_SECONDS: Final = 0.1
#: Seconds from a commit until the log is read for it, in a process that delivers for no subscription.
IDLE_SECONDS: Final = 0.02
#: Seconds from a failure of the store until the work is tried again.
_FAILURE_PAUSE_SECONDS: Final = 1.0
#: Seconds from a change of state until it is written.
WRITE_DELAY_SECONDS: Final = 0.1
_LOG: Final = logging.getLogger("annals.deliveries")


class Deliverer:
    """The deliverer of a process. Call `run`; `committed` and `apply_requests_soon` may be called from any thread.

    lease_seconds: seconds without a heartbeat after which other processes take over.
    write_delay: seconds from a change until it is written, together with all other changes of that time.
    """

    def __init__(
        self,
        url: str,
        ports: DeliveryPorts,
        families: Sequence[EventFamily],
        *,
        metrics: DeliveryMetrics | None = None,
        lease_seconds: float = LEASE_SECONDS,
        write_delay: float = WRITE_DELAY_SECONDS,
    ) -> None:
        self.ports = ports
        self.families = families
        self.metrics = metrics or DeliveryMetrics()
        self.workers: dict[str, SubscriptionWorker] = {}
        self._url = url
        self._reader, self._watcher, self._writer = (
            ReaderThread("log", url),
            ReaderThread("follow", url),
            WorkerThread("state"),
        )
        self._store = StateDatabase(url)
        self._message_reader = EventMessageReader(self._reader.log, families)
        self._dispatcher = EventDispatcher(self._read_chunk)
        self.follower = SubscriptionFollower(self._watcher, self._apply_change)
        self.state_writer = StateWriter(self._writer, self._store, self.workers, write_delay)
        self._housekeeping = Housekeeping(
            self._writer, self._store, self.workers, self.state_writer.save, ports.clock.now
        )
        self._lease_manager = LeaseManager(self, url, lease_seconds)
        self._woken, self._stopped = asyncio.Event(), asyncio.Event()
        self._is_stopping = self._is_wake_requested = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- for the service ---------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Called after each commit, before the client gets its answer."""
        self.follower.committed()
        if not self._is_wake_requested:  # one request covers all commits until the log is read
            self._is_wake_requested = True
            self._call_in_loop(self._wake)

    def apply_requests_soon(self) -> None:
        """Handles requests of other processes now."""
        self._call_in_loop(self._housekeeping.run_soon)

    def stop(self) -> None:
        """Ends `run`, even if it has not started yet."""
        self._is_stopping = True
        self._call_in_loop(self._stopped.set)

    def lags(self) -> list[tuple[str, int]]:
        """How many positions each subscription is behind the log."""
        progress = [(id, _worker_progress(worker)) for id, worker in list(self.workers.items())]
        return [
            (id, max(0, self.follower.head - worker_progress.cursor))
            for id, worker_progress in progress
            if worker_progress is not None
        ]

    def progress(self, id: str) -> DeliveryProgress | None:
        """The current progress of a subscription; None if another process delivers for it."""
        worker = self.workers.get(id)
        return _worker_progress(worker) if worker is not None else None

    # --- see DelivererContext ----------------------------------------------------------------------------------------

    @property
    def may_send(self) -> bool:
        return not self._is_stopping and self._lease_manager.is_valid

    async def catch_up(self) -> None:
        await self.follower.catch_up()

    async def read_again(self, sequences: Sequence[int]) -> Mapping[int, EventMessage]:
        return await self._reader.read(self._message_reader.read_again, sequences)

    def save_soon(self, worker: SubscriptionWorker) -> None:
        self.state_writer.save_soon(worker)

    def read_more(self, worker: SubscriptionWorker) -> None:
        if self.workers.get(worker.id) is worker:
            self._dispatcher.read_more(worker)
            self.read_soon()

    def log_failure(self, error: Exception) -> None:
        if not isinstance(error, StoreLost):  # what finds that logs it once, and only a restart ends it
            _LOG.warning("deliveries: %s: %s", type(error).__name__, error)

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Delivers until `stop`. When cancelled, it ends at once like a crash and writes nothing."""
        self._loop = asyncio.get_running_loop()
        loops: list[asyncio.Task[None]] = []
        try:
            await self._prepare()
            if not self._is_stopping:
                repeated_work = (
                    self._read_log,
                    self.state_writer.run_once,
                    self._lease_manager.renew,
                    self._housekeeping.run_once,
                )
                loops = [asyncio.create_task(self._run_forever(each)) for each in repeated_work]
                await self._stopped.wait()
            await self._shut_down()
        finally:
            for task in (*loops, *self._tasks):
                task.cancel()
            await asyncio.gather(*loops, *self._tasks, return_exceptions=True)
            for each in (self._reader, self._watcher, self._writer, self._lease_manager, self._store):
                each.close()

    async def _prepare(self) -> None:
        """Creates the tables and loads the subscriptions. Tries again while the store fails, until `stop`."""
        while not self._is_stopping:
            try:
                await self._writer.run(state_database.create_tables, self._url, tables.METADATA)
                await self.follower.load()
                return
            except Exception as error:
                self.log_failure(error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_FAILURE_PAUSE_SECONDS):
                        await self._stopped.wait()

    async def _shut_down(self) -> None:
        """Lets attempts finish, writes their results, and releases the leases."""
        self._is_stopping = True
        workers = list(self.workers.values())
        await asyncio.gather(*(worker.close(GRACE_SECONDS) for worker in workers))
        try:
            await self.state_writer.save(workers)
            await self._lease_manager.release_all()
        except driver_errors() as error:
            self.log_failure(error)

    async def _run_forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeats work forever, even while the store fails."""
        while True:
            try:
                await work()
            except Exception as error:
                self.log_failure(error)
                await asyncio.sleep(_FAILURE_PAUSE_SECONDS)

    async def _read_log(self) -> None:
        """Follows and matches the log until its end, then waits for more."""
        self._is_wake_requested = False
        self._woken.clear()
        await self.follower.follow()
        while await self._dispatcher.read_once(self.follower.head):
            await self.follower.follow()
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await self._woken.wait()

    def _wake(self) -> None:
        """Has the log read now, or soon if only a new subscription could be found in it."""
        if self.workers:
            self._woken.set()
        else:
            asyncio.get_running_loop().call_later(IDLE_SECONDS, self._woken.set)

    async def _read_chunk(self, after: int, head: int) -> tuple[int, list[EventMessage]]:
        return await self._reader.read(self._message_reader.read_chunk, after, head)

    # --- workers -----------------------------------------------------------------------------------------------------

    def start_worker(self, id: str, changes: list[SubscriptionChange], saved: SavedDelivery | None) -> None:
        """Starts delivering for a subscription, from its saved state."""
        if id in self.workers:
            return
        worker = self.workers[id] = SubscriptionWorker(self, changes, saved)
        self._dispatcher.add(worker)
        self.save_soon(worker)
        worker.start_attempts()

    def remove_worker(self, worker: SubscriptionWorker) -> None:
        """Stops delivering for a subscription. Running attempts may finish."""
        self.workers.pop(worker.id, None)
        self._dispatcher.remove(worker)
        self.state_writer.remove_worker(worker)
        worker.stop()  # now: the attempt that read of the deletion in the log must not start (SUB-504)
        self.start_task(worker.close(GRACE_SECONDS))

    def read_soon(self) -> None:
        """Makes the deliverer read the log now."""
        self._woken.set()

    def _apply_change(self, change: SubscriptionChange) -> None:
        """Applies a change of a subscription."""
        worker = self.workers.get(change.id)
        if change.subscription is None:
            if worker is not None:
                self.remove_worker(worker)
                self.state_writer.delete_soon(change.id)
                self.start_task(self._remove_metrics(worker))
            self.metrics.remove_subscription(change.id)
        elif change.id not in self.follower.last_changes:
            self._lease_manager.renew_soon()  # no process holds it yet
        elif worker is not None:
            worker.apply_change(change)
            self._dispatcher.add(worker)

    async def _remove_metrics(self, worker: SubscriptionWorker) -> None:
        """Removes the metrics of a deleted subscription again, after its running attempts, which add to them."""
        await worker.wait_until_idle()
        self.metrics.remove_subscription(worker.id)

    def _call_in_loop(self, callback: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):  # the loop was closed in between
                loop.call_soon_threadsafe(callback)


def _worker_progress(worker: SubscriptionWorker) -> DeliveryProgress | None:
    """The progress of a worker, for another thread; None while it is changing."""
    try:
        return DeliveryProgress.from_worker(worker)
    except RuntimeError:
        return None
