"""Views for readers outside the write transaction, with their connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from annals.projections.database.connections import ReadConnection, connect
from annals.projections.database.drivers import Database
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.entities.collection_stream import CollectionStream, stream_collection
from annals.projections.entities.filters.missing_attributes import MissingAttributeCache
from annals.projections.entities.found_entities import DEFINITIONS, POSITION
from annals.projections.entities.tables import tables
from annals.projections.entities.type_counts import TypeCountCache, TypeCounts
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position
from annals.projections.log.positions import checked_position

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

    `view()` yields one in its own read transaction (a snapshot). `quick_view()` returns one on the calling thread's
    own long-lived connection for single lookups, each of which sees the latest commit. On PostgreSQL, a quick view
    loads all rows of a stream at once, so use a `view()` for larger trees.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        #: Whether a statement takes longer than finding a row, so that look-ups had better share statements.
        self.has_round_trips = not url.startswith("sqlite")
        self._idle_connections: list[ReadConnection] = []
        self._quick_connections: list[ReadConnection] = []
        self._local = threading.local()
        self._missing_attributes = MissingAttributeCache()
        self._type_counts = TypeCountCache()

    @contextmanager
    def view(self) -> Iterator[View]:
        """A view of one moment, for the duration of the block; the answer in progress shows that moment."""
        with self._connection() as reader, reader.snapshot(_LOCKED_TABLES, _SELECT_HEADS) as heads:
            view = SnapshotView(reader, self._missing_attributes, self._type_counts, heads)
            note_position(view.position())
            yield view

    @contextmanager
    def stream_collection(self, collection: str, definitions: tuple[int, int]) -> Iterator[CollectionStream | None]:
        """A whole collection that is returned as stored, see `collection_stream`; None if a `view()` is needed."""
        with self._connection() as reader, stream_collection(reader, collection, definitions) as collection_stream:
            yield collection_stream

    def quick_view(self) -> View:
        """The calling thread's view of the latest commit, for each statement."""
        view: View | None = getattr(self._local, "view", None)
        return view if view is not None and self._local.reader.is_open else self._open_quick()

    def latest_view(self) -> View:
        """`quick_view` for an answer of several statements, each of which shows at least the latest state of now."""
        view = self.quick_view()
        note_position(view.position())
        return view

    def close(self) -> None:
        """Closes every connection; none may be in use."""
        for reader in (*self._idle_connections, *self._quick_connections):
            reader.close()
        self._idle_connections.clear()
        self._quick_connections.clear()
        self._local = threading.local()

    def _open_quick(self) -> View:
        reader = connect(self.url)
        self._quick_connections = [*(other for other in self._quick_connections if other.is_open), reader]
        view = View(reader, self._missing_attributes)
        self._local.reader, self._local.view = reader, view
        return view

    @contextmanager
    def _connection(self) -> Iterator[ReadConnection]:
        """A connection for exclusive use, returned to the pool at the end."""
        reader = self._idle_connections.pop() if self._idle_connections else connect(self.url)
        try:
            yield reader
        finally:
            if reader.is_open:
                self._idle_connections.append(reader)
