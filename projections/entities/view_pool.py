"""Views for readers outside the write transaction, with their connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import make_url

from annals.commands.store.database.known_log_end import known_log_end
from annals.projections.database.connection_pool import ConnectionPool, LatestDatabase
from annals.projections.database.connections import ReadConnection
from annals.projections.database.drivers import Database, PostgresDatabase, SqliteDatabase
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.entities.collection_stream import CollectionStream, stream_collection
from annals.projections.entities.filters.missing_attributes import MissingAttributeCache
from annals.projections.entities.found_entities import DEFINITIONS, POSITION
from annals.projections.entities.tables import tables
from annals.projections.entities.type_counts import TypeCountCache, TypeCounts
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position
from annals.projections.log.positions import checked_position

T = TypeVar("T")


class ReaderLimits(NamedTuple):
    """How many connections of a process read at a time. Separate, because each kind may wait for long.

    snapshots: for answers. streams: of these, for clients who may read slowly. background: for work that waits for
    another registry meanwhile. statements: for quick views. A thread with a snapshot may also need one.
    """

    snapshots: int
    streams: int
    background: int
    statements: int


#: With one for what each request needs, and with writers and background work, three servers fit into the hundred of
#: PostgreSQL's default.
SERVER_LIMITS: Final = ReaderLimits(snapshots=10, streams=8, background=2, statements=4)
#: A connection to a file costs little.
FILE_LIMITS: Final = ReaderLimits(snapshots=64, streams=16, background=64, statements=64)

_INDEX_POSITION: Final = f"(SELECT max(position) FROM projection WHERE name = '{INDEX_NAME}')"
_SELECT_HEADS: Final = f"SELECT {POSITION}, {DEFINITIONS}, {_INDEX_POSITION}"
_LOCKED_TABLES: Final = tuple(table.name for table in tables())


class SnapshotView(View):
    """A view in a snapshot transaction. heads: the result of `_SELECT_HEADS` in it."""

    def __init__(
        self,
        db: Database,
        missing_attributes: MissingAttributeCache,
        type_counts: TypeCountCache,
        heads: Sequence[int | None],
    ) -> None:
        super().__init__(db, missing_attributes)
        self._type_counts = type_counts
        self._position, self._model, self._capabilities, index = (checked_position(head or 0) for head in heads)
        self._index_position = self._position if heads[-1] is None else index

    def position(self) -> int:
        return self._position

    def index_position(self) -> int:
        return self._index_position

    def _all_counts(self) -> TypeCounts:
        return self._type_counts.counts(self._db, self._position, super()._all_counts)

    def definitions(self) -> tuple[int, int]:
        return self._model, self._capabilities


class _Caches(NamedTuple):
    """What is kept from one generation of the log, see `KnownLogEnd`."""

    generation: int
    missing_attributes: MissingAttributeCache
    type_counts: TypeCountCache


class ViewPool:
    """Views for readers outside the write transaction.

    `view()` yields one in its own read transaction (a snapshot). `quick_view()` returns one for single lookups, each of
    which sees the latest commit. A quick view loads all rows of a stream at once, so use a `view()` for larger trees.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        #: Whether each statement goes to a server, which takes longer than finding a row: look-ups share statements.
        self.is_server = not url.startswith("sqlite")
        limits = SERVER_LIMITS if self.is_server else FILE_LIMITS
        self.max_streams = limits.streams
        self._snapshots = ConnectionPool(url, limits.snapshots)
        self._background = ConnectionPool(url, limits.background)
        self._statements = ConnectionPool(url, limits.statements)
        self._reserved = ConnectionPool(url, 1)
        driver = PostgresDatabase if self.is_server else SqliteDatabase
        self._latest = LatestDatabase(self._statements, driver)
        self._latest_reserved = LatestDatabase(self._reserved, driver)
        # Of its own, so that reads that wait leave the other threads of the process to other work.
        self._threads = ThreadPoolExecutor(limits.statements, "annals-statement")
        self._known_end = known_log_end(make_url(url))
        self._caches = _Caches(self.generation, MissingAttributeCache(), TypeCountCache())

    @contextmanager
    def view(self) -> Iterator[View]:
        """A view of one moment, for the duration of the block; the answer in progress shows that moment.

        Do not open another one in the block: all connections could be in use by threads that wait for their second.
        """
        with self._view(self._snapshots) as view:
            note_position(view.position())
            yield view

    @contextmanager
    def background_view(self) -> Iterator[View]:
        """`view` for work that waits for another registry in the block; answers never wait for it."""
        with self._view(self._background) as view:
            yield view

    @contextmanager
    def stream_collection(self, collection: str, definitions: tuple[int, int]) -> Iterator[CollectionStream | None]:
        """A whole collection that is returned as stored, see `collection_stream`; None if a `view()` is needed."""
        with self._snapshots.use(lambda reader: stream_collection(reader, collection, definitions)) as stream:
            yield stream

    def quick_view(self) -> View:
        """A view of the latest commit, for each statement. In an event loop, use `read`."""
        return View(self._latest, self._current_caches().missing_attributes)

    def reserved_view(self) -> View:
        """`quick_view` for the little that each request needs, which other reads never keep waiting."""
        return View(self._latest_reserved, self._current_caches().missing_attributes)

    def latest_view(self) -> View:
        """`quick_view` for an answer of several statements, each of which shows at least the latest state of now."""
        view = self.quick_view()
        position = view.position()
        note_position(position)
        self.note_read(position)
        return view

    @property
    def generation(self) -> int:
        """See `KnownLogEnd`. What is kept of answers goes by it, read after their position."""
        return self._known_end.generation

    def note_read(self, position: int) -> None:
        """Remembers the position of a state from which something is kept."""
        self._known_end.note_read(position)

    async def read(self, read: Callable[..., T], *arguments: object) -> T:
        """The result of a function that reads through a quick view, for an event loop.

        A server may let a statement wait, for example for a lock, so a thread runs it. A file is read directly: that
        takes less time than switching threads, and writers never block its readers.
        """
        if not self.is_server:
            return read(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, read, *arguments)

    def close(self) -> None:
        """Closes every connection, also those in use, once they are not."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for pool in (self._snapshots, self._background, self._statements, self._reserved):
            pool.close()

    @contextmanager
    def _view(self, pool: ConnectionPool) -> Iterator[View]:
        with pool.use(_snapshot) as (reader, heads):
            caches = self._current_caches()
            view = SnapshotView(reader, caches.missing_attributes, caches.type_counts, heads)
            self.note_read(view.position())
            yield view

    def _current_caches(self) -> _Caches:
        if self._caches.generation != self.generation:
            self._caches = _Caches(self.generation, MissingAttributeCache(), TypeCountCache())
        return self._caches


@contextmanager
def _snapshot(reader: ReadConnection) -> Iterator[tuple[ReadConnection, Sequence[int | None]]]:
    with reader.snapshot(_LOCKED_TABLES, _SELECT_HEADS) as heads:
        yield reader, heads
