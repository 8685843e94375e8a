"""Reading the REST read model.

A View is one look through one connection: inside a transaction all that it returns belongs to one position of the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from sqlalchemy import Connection

from commands.store.mapper import blob
from domain.filters import EntityFilter, Sort
from domain.values.xid import CAPABILITIES, MODEL, REGISTRY, join, segments, subtree, tree_key, type_of
from projections.audit.registry_diff import RegistryDiff
from projections.audit.trail import AuditTrail
from projections.audit.tree_hashes import TreeHashes
from projections.database import drivers
from projections.database.connections import ReadConnection, connect
from projections.database.drivers import Database
from projections.entities import xref
from projections.entities.by_index import RowOverrides
from projections.entities.collection_stream import SINCE, CollectionStream, stream_collection
from projections.entities.missing_attributes import MissingAttributeCache
from projections.entities.pages import CollectionMembers, past_overrides
from projections.entities.past_database import PastDatabase
from projections.entities.publications import StoredPublications
from projections.entities.rows import EntityRow, stored_row
from projections.entities.scan import ScannedMembers, ScanSelection
from projections.entities.selection import Selection
from projections.entities.stored_links import StoredLinks
from projections.entities.tables import tables
from projections.log.positions import checked_position, read_position
from projections.log.reader import Log
from projections.subscriptions.state.subscriptions import StoredSubscriptions

_COLUMNS: Final = ", ".join(EntityRow._fields)
_WIDTH: Final = len(EntityRow._fields)
_ENTITY: Final = f"SELECT {_COLUMNS} FROM entity WHERE tree_key = ?"
_DEFINITIONS: Final = ", ".join(SINCE.format(tree_key(name)) for name in (MODEL, CAPABILITIES))
_HEADS: Final = f"SELECT (SELECT position FROM projection WHERE name = 'entities'), {_DEFINITIONS}"
_WITH_DEFINITIONS: Final = (
    f"SELECT entity.*, {_DEFINITIONS} FROM (SELECT 1) AS always LEFT JOIN entity ON entity.tree_key = ?"
)
_WITH_DOCUMENT: Final = (
    f"SELECT entity.*, {_DEFINITIONS}, document.bytes FROM (SELECT 1) AS always"
    " LEFT JOIN entity ON entity.tree_key = ? LEFT JOIN document ON document.sha256 = entity.document"
)
_SUBTREE: Final = f"SELECT {_COLUMNS} FROM entity WHERE tree_key > ? AND tree_key < ?{{}} ORDER BY tree_key"
_PRIVATES: Final = "SELECT id, private FROM entity WHERE tree_key > ? AND tree_key < ? AND type = ? ORDER BY tree_key"
_LOCKED: Final = tuple(table.name for table in tables())
_DOCUMENT: Final = "SELECT bytes FROM document WHERE sha256 = ?"


#: What lists the entities of some types below an entity or collection, in tree order.
ListSubtree = Callable[[str, Collection[str]], Iterator[EntityRow]]


class MissingDocument(LookupError):
    """An entity refers to a document that the store does not have: the store was damaged."""


class View:
    """The read model as of one moment, over one connection of a driver. presence: see `pages.Members`."""

    def __init__(self, db: Database, presence: MissingAttributeCache | None = None) -> None:
        self._db = db
        self._presence = presence

    @property
    def log(self) -> Log:
        """The log, through the same connection."""
        return Log(self._db)

    @property
    def trail(self) -> AuditTrail:
        """The audit trail, through the same connection."""
        return AuditTrail(self._db)

    @property
    def subscriptions(self) -> StoredSubscriptions:
        """The subscriptions, through the same connection."""
        return StoredSubscriptions(self._db)

    @property
    def links(self) -> StoredLinks:
        """The replication links of today, through the same connection."""
        return StoredLinks(self._db)

    @property
    def published(self) -> StoredPublications:
        """What the older APIs have beside the registry itself, through the same connection."""
        return StoredPublications(self._db)

    def comparison(self, before: int, after: int) -> RegistryDiff:
        """Two positions of the log compared, through the same connection."""
        return RegistryDiff(self._db, before, after)

    def hashes(self, position: int) -> TreeHashes:
        """Hashes of parts of the tree as it was at a position of the log, through the same connection."""
        return TreeHashes(self._db, position)

    def as_of(self, position: int, definitions: tuple[int, int] | None = None) -> View:
        """The view of a position of the log, through the same connection. definitions: those of then, where known."""
        return PastView(self._db, position, definitions)

    def pinned(self, position: int) -> View:
        """The view that a cursor of a position belongs to: this one, which `moment` takes back to then."""
        return self

    @classmethod
    def over(cls, connection: Connection) -> View:
        """A view through a SQLAlchemy connection: what the transaction that it is in has written included."""
        return cls(drivers.database_of(connection))

    def position(self) -> int:
        """The position of the last event that the read model holds."""
        return read_position(self._db, "entities")

    def definitions(self) -> tuple[int, int]:
        """Positions of the last events of the model and of the capabilities: what a cache of them checks first."""
        model, capabilities = self._db.one(f"SELECT {_DEFINITIONS}")
        return model or 0, capabilities or 0

    def entity(self, xid: str) -> EntityRow | None:
        """The live entity with exactly this xid, letter case included. One look-up by primary key."""
        return _exact(self._db.one(_ENTITY, (tree_key(xid),)), xid)

    def entity_with_definitions(self, xid: str) -> tuple[EntityRow | None, int, int]:
        """`entity` and `definitions` in one statement."""
        found = self._db.one(_WITH_DEFINITIONS, (tree_key(xid),))
        return _exact(found[:_WIDTH], xid), found[_WIDTH] or 0, found[_WIDTH + 1] or 0

    def entity_with_document(self, xid: str) -> tuple[EntityRow | None, int, int, bytes]:
        """`entity_with_definitions` and the entity's document, empty where there is none, in one statement.

        Raises: MissingDocument.
        """
        found = self._db.one(_WITH_DOCUMENT, (tree_key(xid),))
        model, capabilities, content = found[_WIDTH:]
        row = _exact(found[:_WIDTH], xid)
        return row, model or 0, capabilities or 0, _content(row, content)

    def entities(self, xids: Sequence[str]) -> list[EntityRow]:
        """Those of the named entities that live, in the order asked for."""
        keys = self._db.listed(map(tree_key, xids))
        found = self._db.all(f"SELECT {_COLUMNS} FROM entity WHERE {self._db.named('tree_key')}", [keys])
        rows = {values[1]: stored_row(values) for values in found}
        return [rows[xid] for xid in xids if xid in rows]

    def subtree(self, xid: str, types: Collection[str] | None = None) -> Iterator[EntityRow]:
        """The entities below an entity or collection, itself left out, in tree order, streamed; of some types only."""
        wanted = tuple(types) if types is not None else ()
        if types is not None and not wanted:
            return iter(())
        sql = _SUBTREE.format(_of_types(xid, len(wanted)))
        return map(stored_row, self._db.stream(sql, (*subtree(xid), *wanted)))

    def privates(self, collection: str) -> list[tuple[str, str]]:
        """id and private members, as text, of each member of a collection, in order."""
        return self._db.all(_PRIVATES, (*subtree(collection), type_of(collection)))

    def tree(self, xid: str, types: Iterable[str]) -> ListSubtree:
        """`subtree` of what is below a path as readers see it, pointers followed. types: of the Resources there."""
        moment = self.moment(xid, types)
        return self.subtree if moment is None else _subtree_lister(self.selection(xid, None, "", moment))

    def selection(
        self, xid: str, filter: EntityFilter | None, base: str, moment: RowOverrides | None = None
    ) -> Selection:
        """What a filter leaves below an entity or collection. base: absolute URL of the registry."""
        return Selection(self._db, xid, filter, base, moment)

    def members(self, selection: Selection, type: str, sort: Sort | None, size: int) -> CollectionMembers:
        """The members of a selection's collection, in an order. size: how many it has before any filter."""
        return CollectionMembers(self._db, selection, type, sort, size, self._presence)

    def moment(self, xid: str, types: Iterable[str] = (), position: int | None = None) -> RowOverrides | None:
        """What at and below a path reads otherwise than its rows say; None where all is as they do.

        types: of the Resources there, for those that stand for others. position: as of then, None for now.
        """
        low, high = subtree(xid)
        past = past_overrides(self._db, position, low, high) if position is not None else None
        images: dict[str, EntityRow | None] = dict(past.images) if past else {}
        own = [row for row in (self.entity(resource),) if row] if (resource := _resource(xid)) != REGISTRY else []
        found = chain(own, xref.find_xrefs(self._db, types, low, high), filter(None, images.values()))
        left = (row for row in found if images.get(row.tree_key, row) is row)
        images |= xref.resolve_xrefs(self._db, left, position)
        return RowOverrides(images) if images else None

    def shown(self, xid: str) -> EntityRow | None:
        """`entity` as a reader sees it: a pointer shows its target, and has its Versions."""
        row = self.entity(xid)
        if row is not None and xref.xref_of(row) is None:
            return row
        resource = self.entity(_resource(xid)) if _resource(xid) != REGISTRY else None
        return xref.resolve_xrefs(self._db, [resource] if resource else []).get(tree_key(xid), row)

    def document(self, sha256: str) -> bytes:
        """The bytes of a document. Raises: MissingDocument."""
        found = self._db.one(_DOCUMENT, (sha256,))
        if found is None:
            raise MissingDocument(sha256)
        return blob(found[0])


class SnapshotView(View):
    """A view whose connection is in a transaction of one moment. heads: what `_HEADS` gives of it."""

    def __init__(self, db: Database, presence: MissingAttributeCache, heads: Sequence[int | None]) -> None:
        super().__init__(db, presence)
        self._position, self._model, self._capabilities = (checked_position(head or 0) for head in heads)

    def position(self) -> int:
        return self._position

    def definitions(self) -> tuple[int, int]:
        return self._model, self._capabilities


class PastView(View):
    """The read model as of a position of the log. Its cost does not depend on what has happened since.

    definitions: what the method of that name gives, where it is known.
    """

    def __init__(self, db: Database, position: int, definitions: tuple[int, int] | None = None) -> None:
        self._past = PastDatabase(db, position)
        super().__init__(self._past)
        self._now = db
        self._position = position
        self._definitions = definitions

    @property
    def log(self) -> Log:
        return Log(self._now)

    @property
    def subscriptions(self) -> StoredSubscriptions:
        return StoredSubscriptions(self._now, self._position)

    @property
    def published(self) -> StoredPublications:
        return StoredPublications(self._now, self._position)

    def as_of(self, position: int, definitions: tuple[int, int] | None = None) -> View:
        return PastView(self._now, position, definitions)

    def pinned(self, position: int) -> View:
        """The view that a cursor of a position belongs to."""
        return self if position == self._position else self.as_of(position)

    def position(self) -> int:
        return self._position

    def definitions(self) -> tuple[int, int]:
        if self._definitions is None:
            model, capabilities = self.entity(MODEL), self.entity(CAPABILITIES)
            self._definitions = model.since if model else 0, capabilities.since if capabilities else 0
        return self._definitions

    def entity(self, xid: str) -> EntityRow | None:
        return _exact(self._past.entity(tree_key(xid)), xid)

    def entity_with_definitions(self, xid: str) -> tuple[EntityRow | None, int, int]:
        return self.entity(xid), *self.definitions()

    def entity_with_document(self, xid: str) -> tuple[EntityRow | None, int, int, bytes]:
        found = self._past.entity_with_document(tree_key(xid))
        row = _exact(found[:_WIDTH], xid) if found else None
        return row, *self.definitions(), _content(row, found[_WIDTH] if found else None)

    def tree(self, xid: str, types: Iterable[str]) -> ListSubtree:
        return _subtree_lister(self.selection(xid, None, ""))

    def selection(
        self, xid: str, filter: EntityFilter | None, base: str, moment: RowOverrides | None = None
    ) -> Selection:
        return ScanSelection(self._past, xid, filter, base)

    def members(self, selection: Selection, type: str, sort: Sort | None, size: int) -> CollectionMembers:
        return ScannedMembers(self._db, selection, type, sort, size)

    def moment(self, xid: str, types: Iterable[str] = (), position: int | None = None) -> RowOverrides | None:
        """None: rows say all there is, and `selection` follows pointers itself."""
        return None


class ViewPool:
    """Views for readers outside the write transaction.

    `view()` gives one in a read transaction of its own (a snapshot) and takes it back at the end; `quick()` gives the
    calling thread's own long-lived connection for single look-ups, each of which sees the latest commit. What a quick
    view streams is read at once on PostgreSQL: larger trees belong to a `view()`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[ReadConnection] = []
        self._quick: list[ReadConnection] = []
        self._local = threading.local()
        self._presence = MissingAttributeCache()

    @contextmanager
    def view(self) -> Iterator[View]:
        """A view of one moment, for as long as the block lasts."""
        with self._reader() as reader, reader.snapshot(_LOCKED, _HEADS) as heads:
            yield SnapshotView(reader, self._presence, heads)

    @contextmanager
    def listed(self, collection: str, definitions: tuple[int, int]) -> Iterator[CollectionStream | None]:
        """

        A whole collection that reads as it is stored, see `collection_stream`; None where only a `view()` can tell.
        """
        with self._reader() as reader, stream_collection(reader, collection, definitions) as found:
            yield found

    def quick(self) -> View:
        """The calling thread's view of the latest commit, statement by statement."""
        view: View | None = getattr(self._local, "view", None)
        return view if view is not None and self._local.reader.usable else self._open_quick()

    def close(self) -> None:
        """Closes every connection; none may be in use."""
        for reader in (*self._idle, *self._quick):
            reader.close()
        self._idle.clear()
        self._quick.clear()
        self._local = threading.local()

    def _open_quick(self) -> View:
        reader = connect(self._url)
        self._quick = [*(other for other in self._quick if other.usable), reader]
        view = View(reader, self._presence)
        self._local.reader, self._local.view = reader, view
        return view

    @contextmanager
    def _reader(self) -> Iterator[ReadConnection]:
        """A connection that nobody else uses, taken back at the end."""
        reader = self._idle.pop() if self._idle else connect(self._url)
        try:
            yield reader
        finally:
            if reader.usable:
                self._idle.append(reader)


def _exact(values: Any, xid: str) -> EntityRow | None:
    return stored_row(values) if values is not None and values[1] == xid else None


def _content(row: EntityRow | None, content: Any) -> bytes:
    """The bytes of a row's document, empty where it has none. Raises: MissingDocument."""
    if row is not None and row.document is not None and content is None:
        raise MissingDocument(row.document)
    return b"" if content is None else blob(content)


def _subtree_lister(selection: Selection) -> ListSubtree:
    return lambda xid, types: selection.rows(selection.state, types, *subtree(xid))


def _resource(xid: str) -> str:
    """The Resource that a path is of or below; the registry where it is of none."""
    parts = segments(xid)
    return join(*parts[:4]) if len(parts) >= 4 else REGISTRY


def _of_types(xid: str, count: int) -> str:
    if count == 1:
        return " AND type = ?"
    if count:
        # The concatenation hides the column from the index by type, whose many ranges would have to be sorted.
        return f" AND type || '' IN ({', '.join('?' * count)})"
    return f" AND type NOT IN ('{MODEL}', '{CAPABILITIES}')" if xid == REGISTRY else ""
