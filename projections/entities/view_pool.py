"""Views for readers outside the write transaction, with their connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

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
#: Number of connections for single statements, of all connections of a `ViewPool`.
STATEMENT_CONNECTIONS: Final = 4
#: With the connections of writers and background work, three servers fit into the hundred of PostgreSQL's default. A
#: connection to a file costs little.
MAX_CONNECTIONS: Final = 16
MAX_FILE_CONNECTIONS: Final = 68
#: Number of answers that a process makes for clients who may read slowly. Other readers need snapshots, too.
MAX_STREAMS: Final = 8
MAX_FILE_STREAMS: Final = 16

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


class ViewPool:
    """Views for readers outside the write transaction.

    `view()` yields one in its own read transaction (a snapshot). `quick_view()` returns one for single lookups, each of
    which sees the latest commit. A quick view loads all rows of a stream at once, so use a `view()` for larger trees.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        #: Whether a statement takes longer than finding a row, so that look-ups had better share statements.
        self.has_round_trips = not url.startswith("sqlite")
        self.max_streams = MAX_STREAMS if self.has_round_trips else MAX_FILE_STREAMS
        # Separate: a thread with a snapshot may also need a statement, and would wait forever if all others did too.
        limit = MAX_CONNECTIONS if self.has_round_trips else MAX_FILE_CONNECTIONS
        self._snapshots = ConnectionPool(url, limit - STATEMENT_CONNECTIONS)
        self._statements = ConnectionPool(url, STATEMENT_CONNECTIONS)
        self._latest = LatestDatabase(self._statements, PostgresDatabase if self.has_round_trips else SqliteDatabase)
        self._missing_attributes = MissingAttributeCache()
        self._type_counts = TypeCountCache()

    @contextmanager
    def view(self) -> Iterator[View]:
        """A view of one moment, for the duration of the block; the answer in progress shows that moment.

        Do not open another one in the block: all connections could be in use by threads that wait for their second.
        """
        with self._snapshots.use(_snapshot) as (reader, heads):
            view = SnapshotView(reader, self._missing_attributes, self._type_counts, heads)
            note_position(view.position())
            yield view

    @contextmanager
    def stream_collection(self, collection: str, definitions: tuple[int, int]) -> Iterator[CollectionStream | None]:
        """A whole collection that is returned as stored, see `collection_stream`; None if a `view()` is needed."""
        with self._snapshots.use(lambda reader: stream_collection(reader, collection, definitions)) as stream:
            yield stream

    def quick_view(self) -> View:
        """A view of the latest commit, for each statement. In an event loop, use `read`."""
        return View(self._latest, self._missing_attributes)

    def latest_view(self) -> View:
        """`quick_view` for an answer of several statements, each of which shows at least the latest state of now."""
        view = self.quick_view()
        note_position(view.position())
        return view

    async def read(self, read: Callable[..., T], *arguments: object) -> T:
        """The result of a function that reads through a quick view, for an event loop.

        A server may let a statement wait, for example for a lock, so a thread runs it. A file is read directly: that
        takes less time than switching threads, and writers never block its readers.
        """
        return await asyncio.to_thread(read, *arguments) if self.has_round_trips else read(*arguments)

    def close(self) -> None:
        """Closes every connection; none may be in use."""
        self._snapshots.close()
        self._statements.close()


@contextmanager
def _snapshot(reader: ReadConnection) -> Iterator[tuple[ReadConnection, Sequence[int | None]]]:
    with reader.snapshot(_LOCKED_TABLES, _SELECT_HEADS) as heads:
        yield reader, heads
