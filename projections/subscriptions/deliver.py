"""All deliveries of one process: reading the log, matching, and seeing to it that what is found out is kept.

Everything runs in one event loop; what waits for the store runs in threads of its own, one for each purpose. The log is
read for many subscriptions at once: those at its end first, then a piece for whoever is furthest behind.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from projections.connect import Reader, connect
from projections.log import Log
from projections.subscriptions import known, state, store
from projections.subscriptions.facts import Saved
from projections.subscriptions.known import Change
from projections.subscriptions.leases import Held, Leases
from projections.subscriptions.line import Line
from projections.subscriptions.match import Family, Feed, Told
from projections.subscriptions.metrics import Metrics
from projections.subscriptions.ports import LEASE, Ports
from projections.subscriptions.reading import Readings
from projections.subscriptions.store import FAILURES, Books

T = TypeVar("T")

#: Seconds between looks at the log, for what other processes commit.
PAUSE: Final = 0.1
#: See Deliverer.
WRITE: Final = 0.1
#: Seconds between two times that the cursors of subscriptions are written that have nothing to do, or whose attempts
#: have not come to anything yet.
IDLE: Final = 5.0
#: Seconds between two times that what has had its time is removed, and that dead letters are kept (SUB-831).
SWEEP: Final = 3600.0
KEPT: Final = 30 * 86400.0
#: Seconds that attempts have to come to an end when the process does.
GRACE: Final = 5.0
_LOG: Final = logging.getLogger("annals.deliveries")


class Progress(NamedTuple):
    """How far deliveries are. pending: events on their way, or waiting for another attempt."""

    cursor: int
    pending: int

    @classmethod
    def of(cls, line: Line) -> Progress:
        """A line's. Raises: RuntimeError in another thread, where the line is just changing."""
        return cls(line.cursor, line.pending)


class Deliverer:
    """See the module. `run` it; `committed` and `hurry` may be called from any thread.

    lease: seconds after which other processes take over from this one when it says nothing. write: seconds from a
    change to its being written, together with all others of that time.
    """

    def __init__(
        self,
        url: str,
        ports: Ports,
        families: Sequence[Family],
        *,
        metrics: Metrics | None = None,
        lease: float = LEASE,
        write: float = WRITE,
    ) -> None:
        self.ports = ports
        self.families = families
        self.metrics = metrics or Metrics()
        self.lines: dict[str, Line] = {}
        self.head = 0
        self._url = url
        self._lease, self._write_after = lease, write
        self._known: dict[str, Change] = {}
        self._readings = Readings(self._piece)
        self._commits = 0
        self._followed = -1
        self._until = 0.0
        self._lapsed = False
        self._sweeps = 0.0
        self._process = ""
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._dirty: dict[Line, None] = {}
        self._written: dict[str, Progress] = {}
        self._quiet = 0.0
        self._gone: set[str] = set()
        self._leaving: set[str] = set()

    # --- what others call --------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Says that something was committed, before anybody is answered."""
        self._commits += 1
        self._in_loop(lambda: self._woken.set())

    def hurry(self) -> None:
        """Has wishes seen to now."""
        self._in_loop(lambda: self._caring.set())

    def stop(self) -> None:
        """Lets `run` come to its end, also where it is yet to begin."""
        self._stopping = True
        self._in_loop(lambda: self._ended.set())

    def lags(self) -> list[tuple[str, int]]:
        """How many positions each subscription is behind the log."""
        found = [(id, _progress(line)) for id, line in list(self.lines.items())]
        return [(id, max(0, self.head - now.cursor)) for id, now in found if now is not None]

    def progress(self, id: str) -> Progress | None:
        """How far the deliveries of a subscription are by now, where it is this process that makes them."""
        line = self.lines.get(id)
        return _progress(line) if line is not None else None

    # --- see line.Hub ------------------------------------------------------------------------------------------------

    @property
    def may_send(self) -> bool:
        if self._stopping:
            return False
        self._lapsed = time.monotonic() >= self._until
        return not self._lapsed

    async def caught_up(self) -> None:
        while self._followed != self._commits:
            await self._follow()

    async def again(self, sequences: Sequence[int]) -> Mapping[int, Told]:
        return await self._looked(self._reader, self._feed.again, sequences)

    def changed(self, line: Line) -> None:
        if not self._dirty:
            self._writing.set()
        self._dirty[line] = None

    def hungry(self, line: Line) -> None:
        if self.lines.get(line.id) is line:
            self._readings.hungry(line)
            self._woken.set()

    def failed(self, error: Exception) -> None:
        _LOG.warning("deliveries: %s: %s", type(error).__name__, error)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Delivers until `stop`. Cancelled it ends at once, as in a crash: nothing is written any more."""
        self._loop = asyncio.get_running_loop()
        self._woken, self._writing, self._beating = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ended, self._caring = asyncio.Event(), asyncio.Event()
        self._following, self._saving = asyncio.Lock(), asyncio.Lock()
        names = ("log", "follow", "books", "leases")
        pools = [ThreadPoolExecutor(1, thread_name_prefix=f"annals-deliveries-{name}") for name in names]
        self._reader, self._follower, self._writer, self._leaser = pools
        self._reading, self._watching = _Connection(self._url), _Connection(self._url)
        self._books, self._leases = Books(self._url), Leases(self._url, self._lease)
        self._feed = Feed(self._reading.log, self.families)
        loops: list[asyncio.Task[None]] = []
        try:
            await self._in(self._writer, store.create, self._url)
            await self._begin()
            works = (self._read, self._write, self._beat, self._care)
            loops = [asyncio.create_task(self._lasting(each)) for each in works]
            if not self._stopping:
                await self._ended.wait()
            await self._end()
        finally:
            for task in (*loops, *self._tasks):
                task.cancel()
            await asyncio.gather(*loops, *self._tasks, return_exceptions=True)
            for pool in pools:
                pool.shutdown(wait=True)
            for connection in (self._reading, self._watching, self._books, self._leases):
                connection.close()

    async def _begin(self) -> None:
        """Learns of the subscriptions that there are."""
        self.head, found = await self._in(self._follower, self._all)
        self._known = {change.id: change for change in found}
        self._followed = 0 if self._commits == 0 else -1

    async def _end(self) -> None:
        """Attempts come to their end, what they came to is written, and other processes may have what was held."""
        self._stopping = True
        await asyncio.gather(*(line.close(GRACE) for line in self.lines.values()))
        for line in self.lines.values():
            self._dirty[line] = None
        try:
            await self._save()
            await self._in(self._leaser, self._leases.end)
        except FAILURES as error:
            self.failed(error)

    async def _lasting(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does work for ever, whatever happens to the store."""
        while True:
            try:
                await work()
            except Exception as error:
                self.failed(error)
                await asyncio.sleep(1.0)

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def _all(self) -> tuple[int, list[Change]]:
        # In this order: what comes between the two is followed, and taken in once.
        head = self._watching.log().head().last
        return head, known.living(self._watching.database())

    def _news(self, after: int) -> tuple[int, list[Change]]:
        head = self._watching.log().head().last
        return head, known.changes(self._watching.database(), after, head) if head > after else []

    async def _follow(self) -> None:
        """Takes in what became of subscriptions up to the end of the log."""
        async with self._following:
            commits = self._commits
            self.head, changes = await self._looked(self._follower, self._news, self.head)
            for change in changes:
                self._take(change)
            self._followed = commits

    def _take(self, change: Change) -> None:
        line = self.lines.get(change.id)
        if change.subscription is None:
            self._known.pop(change.id, None)
            if line is not None:
                self._gone.add(change.id)
                self._drop(line)
                self._writing.set()
            self.metrics.forget(change.id)
            return
        if change.id not in self._known:
            self._beating.set()  # it is nobody's yet
        self._known[change.id] = change
        if line is not None:
            line.take(change)
            self._readings.put(line)

    def _drop(self, line: Line) -> None:
        """Delivers no more for a subscription; attempts that run may end."""
        self.lines.pop(line.id, None)
        self._readings.remove(line)
        self._dirty.pop(line, None)
        self._written.pop(line.id, None)
        self.start(line.close(GRACE))

    # --- the log -----------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Follows the log, and matches what it brings, until there is no more."""
        self._woken.clear()
        await self._follow()
        while await self._readings.turn(self.head):
            await self._follow()
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                await self._woken.wait()

    async def _piece(self, after: int, head: int) -> tuple[int, list[Told]]:
        return await self._looked(self._reader, self._feed.chunk, after, head)

    # --- what is kept ------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Writes what has changed, some moments after it has, and now and then what has moved on by itself."""
        try:
            async with asyncio.timeout(IDLE):
                await self._writing.wait()
        except TimeoutError:
            pass
        else:
            await asyncio.sleep(self._write_after)
        if time.monotonic() >= self._quiet:
            self._quiet = time.monotonic() + IDLE
            for line in self.lines.values():
                if self._written.get(line.id) != Progress.of(line):
                    self._dirty[line] = None
        self._writing.clear()
        await self._save()

    async def _save(self) -> None:
        async with self._saving:
            lines, gone = list(self._dirty), set(self._gone)
            self._dirty.clear()
            pages = [line.page() for line in lines if self.lines.get(line.id) is line]
            progress = {page.id: Progress.of(self.lines[page.id]) for page in pages}
            if not pages and not gone:
                return
            try:
                held = await self._in(self._writer, self._saved, self._process, pages, gone)
            except BaseException:
                self._dirty |= dict.fromkeys(lines)
                self._writing.set()
                raise
            self._gone -= gone
            for page in pages:
                line = self.lines.get(page.id)
                if line is not None and page.id in held:
                    line.written(page)
                    self._written[page.id] = progress[page.id]

    def _saved(self, process: str, pages: Sequence[state.Page], gone: set[str]) -> set[str]:
        with self._books.writing() as db:
            if gone:
                state.forget(db, gone)
            return state.save(db, process, pages)

    # --- leases ------------------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Says that this process lives, takes what is free, and sees to what others wish."""
        self._beating.clear()
        await self.caught_up()
        found = await self._in(self._leaser, self._leases.beat, list(self._known))
        if found is not None:
            await self._hold(found)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(1.0, self._lease / 5)):
                await self._beating.wait()

    async def _hold(self, found: Held) -> None:
        """Delivers for what is held, and for nothing else."""
        anew = found.process != self._process
        self._process = found.process
        for line in list(self.lines.values()):
            if anew or line.id not in found.held:
                self._drop(line)
        lapsed, self._until = self._lapsed, found.until
        if lapsed:
            for line in self.lines.values():
                line.pump()
        missing = [id for id in found.held - self._leaving if id in self._known and id not in self.lines]
        if missing:
            await self._load(missing)
        lines = [self.lines[id] for id in found.surplus - self._leaving if id in self.lines]
        if lines:
            self._leaving |= {line.id for line in lines}
            self.start(self._let_go(lines))

    async def _load(self, ids: Sequence[str]) -> None:
        """Begins to deliver for subscriptions, from where others have left off."""
        saved = await self._in(self._follower, self._loaded, ids)
        async with self._following:  # so that what comes meanwhile is taken in by lines, after their histories
            revisions = {id: saved[id].revision if id in saved else 0 for id in ids}
            histories = await self._in(self._follower, self._histories, revisions)
            for id in ids:
                if id in self._known and id not in self.lines:
                    line = Line(self, [*histories.get(id, ()), self._known[id]], saved.get(id))
                    self.lines[id] = line
                    self._readings.put(line)
                    self.changed(line)
                    line.pump()
        self._woken.set()

    def _loaded(self, ids: Sequence[str]) -> dict[str, Saved]:
        return state.load(self._watching.database(), ids)

    def _histories(self, revisions: Mapping[str, int]) -> dict[str, list[Change]]:
        head, db = self.head, self._watching.database()
        newest = {id: change.revision for id, change in self._known.items()}
        return {
            id: known.history(db, id, revision, head)
            for id, revision in revisions.items()
            if newest.get(id, revision) > revision
        }

    async def _let_go(self, lines: Sequence[Line]) -> None:
        """Lets other processes have subscriptions, once all about them is written."""
        ids = [line.id for line in lines]
        try:
            await asyncio.gather(*(line.close(GRACE) for line in lines))
            self._dirty |= dict.fromkeys(lines)
            await self._save()
        except FAILURES as error:
            self.failed(error)  # the others will send some of it again
        for line in lines:
            self._drop(line)
        try:
            await self._in(self._leaser, self._leases.release, ids)
        finally:
            self._leaving.difference_update(ids)

    async def _grant(self) -> None:
        """Does what others wish."""
        for id, name, value in await self._in(self._writer, self._wishes, list(self.lines)):
            line = self.lines.get(id)
            if line is not None and name == "consent":
                line.consents.granted(int(value) if value else None)
                line.pump()

    def _wishes(self, ids: Sequence[str]) -> list[tuple[str, str, str]]:
        with self._books.reading() as db:
            return state.wishes(db, ids)

    async def _care(self) -> None:
        """Sees to what others wish, and removes what has had its time.

        Apart from the beat, which must not wait for whoever writes for long.
        """
        await self._grant()
        if time.monotonic() >= self._sweeps:
            self._sweeps = time.monotonic() + SWEEP
            await self._in(self._writer, self._swept_up)
        self._caring.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._caring.wait()

    def _swept_up(self) -> None:
        with self._books.writing() as db:
            state.sweep(db, self.ports.time.now(), KEPT)

    # --- threads -----------------------------------------------------------------------------------------------------

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)

    async def _looked(self, pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
        """What a look at the log gives. A file is read in less time than two threads take to hand over to each other,
        and nobody who writes to it keeps readers waiting; a server may."""
        return work(*arguments) if self._books.is_sqlite else await self._in(pool, work, *arguments)

    def _in_loop(self, work: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):  # it was closed in between
                loop.call_soon_threadsafe(work)


def _progress(line: Line) -> Progress | None:
    """How far a line is, for another thread; None where that is just changing."""
    try:
        return Progress.of(line)
    except RuntimeError:
        return None


class _Connection:
    """A reader of the store for one thread, opened anew after a failure."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._reader: Reader | None = None

    def database(self) -> Reader:
        if self._reader is None or not self._reader.usable:
            self._reader = connect(self._url)
        return self._reader

    def log(self) -> Log:
        return Log(self.database())

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
