"""Reads the REST read model.

A View reads through one connection. Inside a transaction, all its results belong to one position of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any, Final, Self

from sqlalchemy import Connection

from annals.domain.access.roles import Caller
from annals.domain.filters import EntityFilter, Sort
from annals.domain.values.xid import (
    CAPABILITIES,
    MODEL,
    REGISTRY,
    entity_id,
    join,
    segments,
    subtree,
    tree_key,
    type_of,
)
from annals.projections.audit.registry_diff import RegistryDiff
from annals.projections.audit.trail import AuditTrail
from annals.projections.audit.tree_hashes import TreeHashes
from annals.projections.database import drivers
from annals.projections.database.drivers import Database
from annals.projections.entities import xref
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.entities.changed_rows import changed_keys, rows_as_of
from annals.projections.entities.entity_documents import document_content, read_document, read_small_documents
from annals.projections.entities.filters.missing_attributes import MissingAttributeCache
from annals.projections.entities.filters.pages import CollectionMembers
from annals.projections.entities.filters.row_overrides import RowOverrides
from annals.projections.entities.filters.scan import ScannedMembers, ScanSelection
from annals.projections.entities.filters.selection import Selection
from annals.projections.entities.filters.sql import ALWAYS, SqlFragment, among_types, and_, join_fragments
from annals.projections.entities.found_entities import (
    DEFINITIONS,
    ROW_WIDTH,
    WITH_DEFINITIONS,
    WITH_DOCUMENT,
    FoundEntity,
    exact_row,
    found_entity,
)
from annals.projections.entities.id_keys import LAST_ID_KEY, id_key_bound
from annals.projections.entities.past_database import PastDatabase
from annals.projections.entities.publications import StoredPublications
from annals.projections.entities.references import StoredReferences
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row
from annals.projections.entities.schema_versions import StoredSchemas
from annals.projections.entities.stored_links import StoredLinks
from annals.projections.entities.type_counts import TypeCounts
from annals.projections.entities.visibility import EVERYTHING, Visibility
from annals.projections.log.entities_outside_tree import EntitiesOutsideTree
from annals.projections.log.positions import find_position, read_position
from annals.projections.log.reader import Log
from annals.projections.subscriptions.state.subscriptions import StoredSubscriptions

_COLUMNS: Final = ", ".join(ROW_COLUMNS)
_SELECT_ENTITY: Final = f"SELECT {_COLUMNS} FROM entity WHERE tree_key = ?"
_SELECT_DEFINITIONS: Final = f"SELECT {DEFINITIONS}"
_SELECT_SUBTREE: Final = f"SELECT {_COLUMNS} FROM entity WHERE {{}} ORDER BY tree_key"
_IN_COLLECTION: Final = "FROM entity WHERE {} ORDER BY id_key"
_SELECT_OF_TYPE: Final = f"SELECT {_COLUMNS} {_IN_COLLECTION}"
_SELECT_PRIVATES: Final = f"SELECT xid, private {_IN_COLLECTION}"


#: Lists the entities of some types below an entity or collection, in tree order.
ListSubtree = Callable[[str, Collection[str]], Iterator[EntityRow]]


class View:
    """The read model as of one moment, on one connection of a driver.

    missing_attributes: see `pages.CollectionMembers`.
    """

    #: Which entities it shows.
    visibility = EVERYTHING

    def __init__(self, db: Database, missing_attributes: MissingAttributeCache | None = None) -> None:
        self._db = db
        self._missing_attributes = missing_attributes

    def seen_by(self, caller: Caller, xid: str = REGISTRY) -> Self:
        """The view as a caller sees it. xid: below which it is read; inside a visible Group all is visible."""
        visibility = Visibility.of_caller(caller).within(xid)
        return self if visibility == self.visibility else self._with_visibility(visibility)

    def _with_visibility(self, visibility: Visibility) -> Self:
        view = copy(self)
        view.visibility = visibility
        if visibility != EVERYTHING:
            view._missing_attributes = None  # it is of all members
        return view

    @property
    def _visible_entities(self) -> Visibility | None:
        return None if self.visibility == EVERYTHING else self.visibility

    def visible_counts(self, plurals: Collection[str]) -> dict[str, int]:
        """The numbers of visible Groups of some types, in one statement."""
        if not plurals:
            return {}
        return dict(self._db.all(*join_fragments(" UNION ALL ", map(self._count_query, plurals))))

    def _count_query(self, plural: str) -> SqlFragment:
        keys = self.visibility.id_keys(self._db, "id_key", plural, "", LAST_ID_KEY)
        return and_(SqlFragment(f"SELECT '{plural}', count(*) FROM entity WHERE type = ?", (plural,)), keys)

    def counts_below(self, xid: str) -> TypeCounts:
        """The numbers of entities below an entity or collection by type.

        Those of the registry are counted in the index of types alone, or known; others take a look at each entity.
        """
        if xid == REGISTRY and self.visibility == EVERYTHING:
            return self._all_counts()
        keys = self.visibility.tree_keys(self._db, "tree_key", *subtree(xid))
        return self._counts_by_type(and_(keys.wrap("({})"), _type_condition(xid, ())))

    def _all_counts(self) -> TypeCounts:
        return self._counts_by_type(_type_condition(REGISTRY, ()))

    def _counts_by_type(self, condition: SqlFragment) -> TypeCounts:
        query = condition.wrap("SELECT type, count(*) FROM entity WHERE {} GROUP BY type ORDER BY type")
        return {type: count for type, count in self._db.all(*query) if not type.startswith("/")}

    @property
    def database(self) -> Database:
        """The connection, for queries of other projections about the same moment."""
        return self._db

    @property
    def log(self) -> Log:
        """The log, on the same connection."""
        return Log(self._db)

    @property
    def trail(self) -> AuditTrail:
        """The audit trail, on the same connection."""
        return AuditTrail(self._db, self._visible_entities)

    @property
    def subscriptions(self) -> StoredSubscriptions:
        """The subscriptions, on the same connection."""
        return StoredSubscriptions(self._db)

    @property
    def links(self) -> StoredLinks:
        """The current replication links, on the same connection."""
        return StoredLinks(self._db)

    def outside_tree(self, collection: str) -> EntitiesOutsideTree:
        """The live entities of a collection outside the registry's tree, such as `/-/keys`, on the same connection."""
        return EntitiesOutsideTree(self._db, collection)

    @property
    def publications(self) -> StoredPublications:
        """The publications of the legacy APIs, which the registry itself does not show, on the same connection."""
        return StoredPublications(self._db)

    @property
    def schemas(self) -> StoredSchemas:
        """What Confluent's API looks up, on the same connection."""
        return StoredSchemas(self._db)

    @property
    def references(self) -> StoredReferences:
        """What may refer to entities, on the same connection."""
        return StoredReferences(self._db, self.visibility)

    def diff(self, before: int, after: int) -> RegistryDiff:
        """The difference between two log positions, on the same connection."""
        return RegistryDiff(self._db, before, after, self._visible_entities)

    def tree_hashes(self, position: int) -> TreeHashes:
        """Hashes of parts of the tree as of a log position, on the same connection."""
        return TreeHashes(self._db, position, self._visible_entities)

    def as_of(self, position: int, definitions: tuple[int, int] | None = None) -> View:
        """The view of a log position, on the same connection. definitions: those of that position, if known."""
        return PastView(self._db, position, definitions)._with_visibility(self.visibility)

    def at_cursor(self, position: int) -> View:
        """The view for a cursor with a position: this one, which `row_overrides` rewinds to the position."""
        return self

    @classmethod
    def of_connection(cls, connection: Connection) -> View:
        """A view on a SQLAlchemy connection; it includes the writes of the current transaction."""
        return cls(drivers.database_of(connection))

    def position(self) -> int:
        """The position of the last event in the read model."""
        return read_position(self._db, "entities")

    def index_position(self) -> int:
        """The position of the last event in the attribute index, which may be behind the rows."""
        position = find_position(self._db, INDEX_NAME)
        return self.position() if position is None else position

    def definitions(self) -> tuple[int, int]:
        """Positions of the last events of the model and of the capabilities; caches of them compare these first."""
        model, capabilities = self._db.look_up(_SELECT_DEFINITIONS)
        return model or 0, capabilities or 0

    def entity(self, xid: str) -> EntityRow | None:
        """The live entity with exactly this xid, including letter case. Cost: one lookup by primary key."""
        return self._if_visible(exact_row(self._stored_values(xid), xid))

    def entity_in_any_case(self, xid: str) -> EntityRow | None:
        """The live entity whose xid differs from this one in letter case at most. Cost: as `entity`."""
        values = self._stored_values(xid)
        return self._if_visible(stored_row(values)) if values is not None else None

    def _stored_values(self, xid: str) -> Sequence[Any] | None:
        return None if "\0" in xid else self._db.look_up(_SELECT_ENTITY, (tree_key(xid),))

    def look_up(self, xid: str, with_document: bool = False) -> FoundEntity:
        """`entity`, `definitions` and, if wanted, the entity's document in one statement. Raises: MissingDocument."""
        values = self._db.look_up(WITH_DOCUMENT if with_document else WITH_DEFINITIONS, (tree_key(xid),))
        return found_entity(values, xid)

    def entities(self, xids: Sequence[str]) -> list[EntityRow]:
        """The named entities that are live, in the given order."""
        keys = self._db.list_parameter(map(tree_key, xids))
        value_rows = self._db.all(f"SELECT {_COLUMNS} FROM entity WHERE {self._db.in_list('tree_key')}", [keys])
        rows = {row.xid: row for row in self.visibility.among(map(stored_row, value_rows))}
        return [rows[xid] for xid in xids if xid in rows]

    def subtree(self, xid: str, types: Collection[str] | None = None) -> Iterator[EntityRow]:
        """The entities below an entity or collection, without itself, in tree order, streamed. types: only these."""
        type_names = tuple(types) if types is not None else ()
        if types is not None and not type_names:
            return iter(())
        if len(type_names) == 1:
            return map(stored_row, self._db.stream(*self._members_query(xid, *type_names).wrap(_SELECT_OF_TYPE)))
        keys = self.visibility.tree_keys(self._db, "tree_key", *subtree(xid))
        query = and_(keys, _type_condition(xid, type_names)).wrap(_SELECT_SUBTREE)
        return map(stored_row, self._db.stream(*query))

    def private_members(self, collection: str) -> list[tuple[str, str]]:
        """The id and the private members, as text, of each member of a collection, in order."""
        rows = self._db.all(*self._members_query(collection, type_of(collection)).wrap(_SELECT_PRIVATES))
        return [(entity_id(xid), private) for xid, private in rows]

    def subtree_lister(self, xid: str, types: Iterable[str]) -> ListSubtree:
        """`subtree` as readers see it, with xrefs resolved. types: of the Resources below the path."""
        row_overrides = self.row_overrides(xid, types)
        return _subtree_lister(self.selection(xid, None, "", row_overrides)) if row_overrides else self.subtree

    def selection(
        self, xid: str, filter: EntityFilter | None, base_url: str, row_overrides: RowOverrides | None = None
    ) -> Selection:
        """What a filter selects below an entity or collection.

        base_url: absolute URL of the registry. row_overrides: those of the present that the index needs if None.
        """
        if row_overrides is None:
            row_overrides = self.row_overrides(xid, uses_index=True)
        return Selection(self._db, xid, filter, base_url, row_overrides, self.visibility)

    def members(self, selection: Selection, type: str, sort: Sort | None, size: int) -> CollectionMembers:
        """The members of a selection's collection, sorted. size: its size before any filter."""
        return CollectionMembers(self._db, selection, type, sort, size, self._missing_attributes)

    def row_overrides(
        self, xid: str, types: Iterable[str] = (), position: int | None = None, *, uses_index: bool = False
    ) -> RowOverrides:
        """The entities at and below a path that read differently from their rows.

        types: of the Resources there, to find those with an xref. position: of the moment, None for now. uses_index:
        include those whose rows the attribute index does not have yet.
        """
        low, high = subtree(xid)
        starts = [start for start in (position, self.index_position() if uses_index else None) if start is not None]
        images = self._changed_images(min(starts), position, low, high) if starts else {}
        moment = self if position is None else self.as_of(position)
        own_rows = (
            [row for row in (moment.entity(resource),) if row]
            if (resource := _resource_or_registry(xid)) != REGISTRY
            else []
        )
        xref_rows = self.visibility.among(xref.find_xrefs(self._db, types, low, high))
        candidates = chain(own_rows, xref_rows, filter(None, images.values()))
        unchanged_rows = (row for row in candidates if images.get(row.tree_key, row) is row)
        pointers = [row for row in unchanged_rows if xref.xref_of(row) is not None]
        is_newer_only = position is None and not pointers
        return RowOverrides(xref.XrefTargets(self._db, position), images, pointers, is_newer_only=is_newer_only)

    def xref_rows(self, xid: str, types: Collection[str]) -> Iterator[EntityRow]:
        """The visible Resources with an xref of some types below an entity or collection."""
        return self.visibility.among(xref.find_xrefs(self._db, types, *subtree(xid)))

    def _changed_images(self, after: int, position: int | None, low: str, high: str) -> dict[str, EntityRow | None]:
        """The entities between two keys with events after a position, as of another position; None for now."""
        current_position = self.position()
        if after >= current_position:
            return {}
        between_keys = (key for key in changed_keys(self._db, after, current_position) if low < key < high)
        keys = [key for key in between_keys if self.visibility.sees_key(key)]
        return {**dict.fromkeys(keys), **(rows_as_of(self._db, keys, position) if keys else {})}

    def resolved_entity(self, xid: str) -> EntityRow | None:
        """`entity` as a reader sees it: a Resource with an xref shows its target and the target's Versions."""
        row = self.entity(xid)
        if row is not None and xref.xref_of(row) is None:
            return row
        resource = self.entity(_resource_or_registry(xid)) if _resource_or_registry(xid) != REGISTRY else None
        is_pointer = resource is not None and xref.xref_of(resource) is not None
        return xref.XrefTargets(self._db).entity(resource, xid) if resource and is_pointer else row

    def xref_target(self, pointer: EntityRow) -> EntityRow | None:
        """The stored row of the Resource that an xref shows; None if it shows nothing. pointer: has the xref."""
        return xref.XrefTargets(self._db).target(pointer)

    def _members_query(self, xid: str, type: str) -> SqlFragment:
        """The condition for the visible entities of a type below an entity or collection."""
        low, high = subtree(xid)
        bounds = id_key_bound(type, low), id_key_bound(type, high)
        return and_(SqlFragment("type = ?", (type,)), self.visibility.id_keys(self._db, "id_key", type, *bounds))

    def _if_visible(self, row: EntityRow | None) -> EntityRow | None:
        return row if row is not None and self.visibility.sees_key(row.tree_key) else None

    def document(self, sha256: str) -> bytes:
        """The bytes of a document. Raises: MissingDocument."""
        return read_document(self._db, sha256)

    def small_documents(self, sha256s: Iterable[str]) -> dict[str, bytes]:
        """The bytes of those documents that are small, in one statement. Leaves out damaged and missing ones."""
        return read_small_documents(self._db, sha256s)


class PastView(View):
    """The read model as of a log position. Its cost does not depend on later changes.

    definitions: the result of the method of the same name, if known.
    """

    def __init__(self, db: Database, position: int, definitions: tuple[int, int] | None = None) -> None:
        self._past_db = PastDatabase(db, position)
        super().__init__(self._past_db)
        self._current_db = db
        self._position = position
        self._definitions = definitions

    @property
    def log(self) -> Log:
        return Log(self._current_db)

    @property
    def subscriptions(self) -> StoredSubscriptions:
        return StoredSubscriptions(self._current_db, self._position)

    def outside_tree(self, collection: str) -> EntitiesOutsideTree:
        return EntitiesOutsideTree(self._current_db, collection, self._position)

    @property
    def publications(self) -> StoredPublications:
        return StoredPublications(self._current_db, self._position)

    @property
    def schemas(self) -> StoredSchemas:
        return StoredSchemas(self._current_db, self._position)

    @property
    def references(self) -> StoredReferences:
        return StoredReferences(self._current_db, self.visibility, self._position)

    def as_of(self, position: int, definitions: tuple[int, int] | None = None) -> View:
        return PastView(self._current_db, position, definitions)._with_visibility(self.visibility)

    def at_cursor(self, position: int) -> View:
        """The view for a cursor with a position."""
        return self if position == self._position else self.as_of(position)

    def position(self) -> int:
        return self._position

    def definitions(self) -> tuple[int, int]:
        if self._definitions is None:
            model, capabilities = self.entity(MODEL), self.entity(CAPABILITIES)
            self._definitions = model.since if model else 0, capabilities.since if capabilities else 0
        return self._definitions

    def entity(self, xid: str) -> EntityRow | None:
        return self._if_visible(exact_row(self._past_db.entity(tree_key(xid)), xid))

    def entity_in_any_case(self, xid: str) -> EntityRow | None:
        values = self._past_db.entity(tree_key(xid))
        return self._if_visible(stored_row(values)) if values is not None else None

    def look_up(self, xid: str, with_document: bool = False) -> FoundEntity:
        if not with_document:
            return FoundEntity(self.entity(xid), self.definitions(), self._position)
        values = self._past_db.entity_with_document(tree_key(xid))
        row = exact_row(values[:ROW_WIDTH], xid) if values else None
        content = document_content(row, values[ROW_WIDTH] if values else None)
        return FoundEntity(row, self.definitions(), self._position, content)

    def subtree_lister(self, xid: str, types: Iterable[str]) -> ListSubtree:
        return _subtree_lister(self.selection(xid, None, ""))

    def selection(
        self, xid: str, filter: EntityFilter | None, base_url: str, row_overrides: RowOverrides | None = None
    ) -> Selection:
        return ScanSelection(self._past_db, xid, filter, base_url, self.visibility)

    def members(self, selection: Selection, type: str, sort: Sort | None, size: int) -> CollectionMembers:
        return ScannedMembers(self._db, selection, type, sort, size)

    def row_overrides(
        self, xid: str, types: Iterable[str] = (), position: int | None = None, *, uses_index: bool = False
    ) -> RowOverrides:
        """Nothing, because `selection` resolves xrefs itself and rows need no other change."""
        return RowOverrides(xref.XrefTargets(self._db))

    def xref_rows(self, xid: str, types: Collection[str]) -> Iterator[EntityRow]:
        rows = xref.find_past_xrefs(self._current_db, types, *subtree(xid), self._position)
        return self.visibility.among(rows)


def _subtree_lister(selection: Selection) -> ListSubtree:
    return lambda xid, types: selection.rows(selection.state, types, *subtree(xid))


def _resource_or_registry(xid: str) -> str:
    """The Resource at or above a path; the registry if there is none."""
    parts = segments(xid)
    return join(*parts[:4]) if len(parts) >= 4 else REGISTRY


def _type_condition(xid: str, types: Collection[str]) -> SqlFragment:
    if types:
        return among_types(types)
    return SqlFragment(f"type NOT IN ('{MODEL}', '{CAPABILITIES}')") if xid == REGISTRY else ALWAYS
