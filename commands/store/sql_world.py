"""SqlWorld: the registry as decisions see it, read from head and log inside the write transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from annals.commands.store.archive.state_reader import state_reader
from annals.commands.store.assigned_schema_ids import AssignedSchemaIds
from annals.commands.store.caches import KnownState, LinkCache, ModelCache
from annals.commands.store.compression.document_compression import decompress_document
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.database import sql
from annals.commands.store.known_version_chains import KnownVersionChains
from annals.commands.store.log_end import HAS_POINTERS, StartState
from annals.commands.store.mapper import EventMapper, require_bytes
from annals.commands.store.schema_lookups import SchemaLookups
from annals.commands.store.secrets import Vault
from annals.commands.store.stream_head import NO_STREAM_HEAD, StreamHead
from annals.domain.compat.publications import NoPublications, Publications
from annals.domain.confluent.schema_index import NoSchemas, SchemaIndex
from annals.domain.decisions.checks.document_checks import CheckResults, ChecksRequired, DocumentCheck
from annals.domain.decisions.world import Secret, StreamDifference
from annals.domain.model import Model, compile_model
from annals.domain.registry.entities import Entity, xref_target
from annals.domain.registry.events import EntityEvent
from annals.domain.registry.evolve import evolve
from annals.domain.replication import link as links
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids

_HEAD_COLUMNS: Final = "SELECT h.tree_key, h.revision, h.hash, l.position, l.topic, l.state FROM "
_WITH_LOG: Final = "head h JOIN log l ON l.position = h.position WHERE "
HEADS_BY_KEY: Final = f"{_HEAD_COLUMNS}{_WITH_LOG}h.tree_key {{among}}"
HEADS_OF_SUBTREE: Final = (
    f"{_HEAD_COLUMNS}{_WITH_LOG}h.tree_key > ? AND h.tree_key < ? AND h.live ORDER BY h.tree_key LIMIT ?"
)
# Not pairs, such as `(h.type, h.tree_key) < (?, ?)`: PostgreSQL goes on from the end of such a range to the type's end.
#: The entities of a type within a range of tree keys; those in the range of a collection are its members.
HEADS_OF_TYPE: Final = (
    f"{_HEAD_COLUMNS}{_WITH_LOG}h.live AND h.type = ? AND h.tree_key > ? AND h.tree_key < ? ORDER BY h.tree_key LIMIT ?"
)
COUNT_MEMBERS: Final = "SELECT count(*) FROM head WHERE live AND type = ? AND tree_key > ? AND tree_key < ?"
_IN_COLLECTION: Final = "type = ? AND tree_key > collection.key || '!' AND tree_key < collection.key || '\"'"
#: The members of collections of a type. The first parameter is the list of their tree keys. PostgreSQL takes such a
#: range for a ninth of the table, and would read the whole type once; it plans a query with OFFSET for itself.
HEADS_OF_COLLECTIONS: Final = {
    "sqlite": f"{_HEAD_COLUMNS}{{keys}} AS collection CROSS JOIN {_WITH_LOG}h.live AND {_IN_COLLECTION}"
    " ORDER BY h.tree_key",
    "postgresql": f"{_HEAD_COLUMNS}{{keys}} AS collection CROSS JOIN LATERAL"
    f" (SELECT * FROM head WHERE live AND {_IN_COLLECTION} ORDER BY tree_key OFFSET 0) AS h"
    " JOIN log l ON l.position = h.position ORDER BY h.tree_key",
}
#: Streams with events after a position, each with the last event that it had at that position, if any.
STREAM_DIFFERENCES: Final = (
    "SELECT h.tree_key, h.xid, t.revision, t.position, t.topic, t.state FROM head h"
    " LEFT JOIN log t ON t.stream = replace(h.tree_key, '!', '/') AND t.revision ="
    " (SELECT p.revision FROM log p WHERE p.stream = replace(h.tree_key, '!', '/') AND p.position <= ?"
    " ORDER BY p.revision DESC LIMIT 1)"
    " WHERE h.tree_key >= ? AND h.tree_key < ? AND h.position > ? ORDER BY h.tree_key LIMIT ?"
)
XREF_SOURCES: Final = "SELECT xref, xid FROM head WHERE xref {among} ORDER BY tree_key"


class _CachedState(NamedTuple):
    """What `SqlWorld.roll_back` restores."""

    model: Model | None
    links_position: int | None
    links: tuple[Link, ...] | None
    has_pointers: bool | None


class SqlWorld:
    """A `annals.domain.decisions.world.World` for one write transaction; each stream is read at most once."""

    def __init__(
        self,
        connection: Connection,
        mapper: EventMapper,
        model_cache: ModelCache,
        vault: Vault | None = None,
        published: Publications | None = None,
        link_cache: LinkCache | None = None,
        schemas: SchemaIndex | None = None,
    ) -> None:
        stored_schemas: SchemaIndex = schemas or NoSchemas()
        self._stream_heads: dict[str, StreamHead] = {}
        self._schemas = SchemaLookups(stored_schemas, partial(_never_existed, self._stream_heads))
        self.schema_ids = AssignedSchemaIds(stored_schemas)
        self._publications: Publications = published or NoPublications()
        self._connection = connection
        self._vault = vault or Vault()
        self._mapper = mapper
        self._read_state = state_reader(connection)
        self._model_cache = model_cache
        self._link_cache = link_cache or LinkCache()
        self._links_position: int | None = None
        self._links: tuple[Link, ...] | None = None
        self._model: Model | None = None
        self._model_hash: bytes | None = None
        self._definition_positions: dict[str, int] = {}
        self._replaced_heads: dict[str, StreamHead | None] = {}  # since the last `release`
        self._has_pointers: bool | None = None
        self._xref_sources: dict[str, list[str]] = {}
        self._prefetched_members: dict[str, list[Entity]] = {}  # by the collection's tree key; each is read once
        self._unwritten_collections: set[str] = set()
        self._write: Callable[[], None] = _write_nothing
        self._unwritten_document: Callable[[str], bytes | None] = _no_document
        #: The known Versions of Resources, see `version_chain`, by the stream of the Resource.
        self.version_chains = KnownVersionChains({})
        self._released = self._cached_state()
        #: Results of the document checks that the current command needs.
        self.known_results: CheckResults = {}

    @property
    def model(self) -> Model:
        if self._model is None:
            self._model = self._current_model()
        return self._model

    @property
    def publications(self) -> Publications:
        self._write_appended()
        return self._publications

    @property
    def schemas(self) -> SchemaIndex:
        return self._schemas

    def attach(self, write: Callable[[], None], unwritten_document: Callable[[str], bytes | None]) -> None:
        """Names what a transaction provides: `write` writes the events it has appended, which queries would miss."""
        self._write = self._schemas.write = write
        self._unwritten_document = unwritten_document

    def detach(self) -> None:
        """Forgets the transaction, which has ended: both are freed at once if neither refers to the other."""
        self.attach(_write_nothing, _no_document)

    def add_known_state(self, state: KnownState) -> None:
        """Adds what is known of the start of the transaction."""
        self._stream_heads |= state.heads
        self.version_chains = KnownVersionChains(state.version_chains)
        self.schema_ids.stored_highest = state.highest_schema_id

    @property
    def known_state(self) -> KnownState:
        """What is known by now, with what the transaction has added itself."""
        return KnownState(self._stream_heads, self.version_chains.all(), self.schema_ids.known_highest)

    def preload(self, start: StartState) -> None:
        """Sets what is known at the start of the transaction."""
        self._model_hash = require_bytes(start.model_hash) if start.model_hash else None
        self._definition_positions = {
            xids.MODEL: start.model_position or 0,
            xids.CAPABILITIES: start.capabilities_position or 0,
        }
        self._links_position = start.links_position or 0
        self._has_pointers = bool(start.has_pointers)
        self._released = self._cached_state()

    def definition_position(self, xid: str) -> int:
        """The position of the last event of the model or of the capabilities, 0 if there is none."""
        head = self._stream_heads.get(xids.tree_key(xid))
        if head is None and xid in self._definition_positions:
            return self._definition_positions[xid]
        return self.stream_head(xid).position

    @property
    def links(self) -> Sequence[Link]:
        if self._links is None:
            if self._links_position is None:
                self._links = self._read_links()
            else:
                cached = self._link_cache.find(self._links_position)
                self._links = (
                    cached if cached is not None else self._link_cache.put(self._links_position, self._read_links())
                )
        return self._links

    def prefetch(self, names: Iterable[str]) -> None:
        unknown: set[str] = set()
        for name in names:
            key = xids.tree_key(name)
            if key in self._stream_heads:
                continue
            if self._never_existed(name):
                self._stream_heads[key] = NO_STREAM_HEAD
            else:
                unknown.add(key)
        if unknown:
            self._load(unknown)

    def prefetch_schemas(
        self, subjects: Collection[tuple[str, str]], whole_subjects: Collection[tuple[str, str]], ids: Collection[int]
    ) -> None:
        """Reads the newest versions of subjects, by Group and name, all of others, and those with ids: a query each."""
        self._schemas.prefetch(subjects, whole_subjects, ids)

    def get(self, xid: str) -> Entity | None:
        return self.stream_head(xid).entity

    def revision(self, xid: str) -> int:
        return self.stream_head(xid).revision

    def members(self, collection: str) -> Sequence[Entity]:
        """See World. Cost: O(members), by index."""
        if (prefetched := self._prefetched_members.pop(xids.tree_key(collection), None)) is not None:
            return prefetched
        self._write_appended(collection)
        return list(self._pages(HEADS_OF_TYPE, xids.subtree(collection), xids.type_of(collection)))

    def version_chain(self, resource: str) -> Sequence[str] | None:
        return self.version_chains.find(xids.stream(resource))

    def prefetch_members(self, collections: Iterable[str]) -> None:
        """See World. Cost: one query for each thousand collections of a type."""
        keys_by_type: dict[str, set[str]] = {}
        for collection in collections:
            keys_by_type.setdefault(xids.type_of(collection), set()).add(xids.tree_key(collection))
        if keys_by_type:
            self._write_appended()
        statement = HEADS_OF_COLLECTIONS[self._connection.dialect.name]
        for type, keys in keys_by_type.items():
            for chunk in sql.chunks(sorted(keys)):
                self._prefetched_members |= {key: [] for key in chunk}
                parameters = (sql.list_parameter(self._connection, chunk), type)
                for row in sql.run(self._connection, statement, parameters).fetchall():
                    self._prefetched_members[_collection_key(row[0])].append(self._remember_live(row))

    def count(self, collection: str) -> int:
        """See World. Cost: O(members), without reading any."""
        self._write_appended(collection)
        type, (start_key, end_key) = xids.type_of(collection), xids.subtree(collection)
        total: int = sql.scalar(self._connection, COUNT_MEMBERS, (type, start_key, end_key))
        return total

    def subtree(self, xid: str) -> Iterator[Entity]:
        """See World. Cost: O(entities below, including deleted ones), a page at a time."""
        self._write_appended()
        for entity in self._pages(HEADS_OF_SUBTREE, xids.subtree(xid)):
            if entity.xid not in xids.ROOT_STREAMS and not xids.is_outside_tree(xids.stream(entity.xid)):
                yield entity

    def entities_of_type(self, type: str) -> Iterator[Entity]:
        """See World. Cost: O(entities of the type), a page at a time."""
        self._write_appended()
        return self._pages(HEADS_OF_TYPE, xids.subtree(xids.REGISTRY), type)

    def differences(self, xid: str, position: int) -> Iterator[StreamDifference]:
        """See World. Cost: O(streams there, including deleted ones), plus what was added to those that differ."""
        self._write_appended()
        start_key, end_key = xids.tree_key(xid), xids.subtree(xid)[1]
        while True:
            values = (position, start_key, end_key, position, sql.CHUNK)
            page = sql.run(self._connection, STREAM_DIFFERENCES, values).fetchall()
            self._load({key for key, *_ in page})
            for key, name, *event_columns in page:
                if xids.is_outside_tree(xids.stream(name)):
                    continue
                yield StreamDifference(name, self._past_entity(*event_columns), self._stream_heads[key].entity)
            if len(page) < sql.CHUNK:
                return
            start_key = page[-1][0] + "!"  # nothing sorts between a key and those of its children

    def entities_outside_tree(self, collection: str) -> Iterator[Entity]:
        """See World. Cost: O(entities there), by index."""
        self._write_appended()
        return self._pages(HEADS_OF_SUBTREE, xids.subtree(collection))

    def xref_sources(self, xid: str) -> Sequence[str]:
        """See World. Cost: none if no Resource has an xref, which is queried once."""
        self.prefetch_xref_sources((xid,))
        return self._xref_sources.get(xid, [])

    def prefetch_xref_sources(self, names: Iterable[str]) -> None:
        if self._has_pointers is None:
            self._has_pointers = bool(sql.scalar(self._connection, HAS_POINTERS))
        if not self._has_pointers:
            return
        self._write_appended()
        for chunk in sql.chunks(sorted({name for name in names if name not in self._xref_sources})):
            self._xref_sources |= {name: [] for name in chunk}
            for target, source in sql.run(
                self._connection, XREF_SOURCES, (sql.list_parameter(self._connection, chunk),)
            ):
                self._xref_sources[target].append(source)

    def document(self, sha256: str) -> bytes:
        if (unwritten := self._unwritten_document(sha256)) is not None:
            return unwritten
        content = sql.scalar(self._connection, "SELECT bytes FROM document WHERE sha256 = ?", (sha256,))
        if content is None:
            raise KeyError(sha256)
        return decompress_document(sha256, content)

    def secret(self, secret: Secret) -> str | None:
        return self._vault.reveal(self._connection, secret)

    def check_results(self, document_checks: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> CheckResults:
        """See World. Runs no checks, because other writers wait for the lock."""
        missing_checks = document_checks - self.known_results.keys()
        if missing_checks:
            raise ChecksRequired(missing_checks, documents)
        return self.known_results

    def stream_head(self, xid: str) -> StreamHead:
        """The head of an xid's stream; revision 0 if it has no event."""
        key = xids.tree_key(xid)
        if key not in self._stream_heads:
            if self._never_existed(xid):
                self._stream_heads[key] = NO_STREAM_HEAD
            else:
                self._load({key})
        return self._stream_heads[key]

    def add_event(self, event: EntityEvent, position: int, hash: bytes) -> None:
        """Adds an event that this transaction has just appended."""
        key = xids.tree_key(event.xid)
        self._replaced_heads.setdefault(key, self._stream_heads.get(key))
        self._stream_heads[key] = StreamHead(event.revision, hash, event if hash else None, position)
        self._unwritten_collections.add(_collection_key(key))
        self.version_chains.add_event(event)
        self.schema_ids.add(event)
        self._schemas.add(event)
        if event.xid == xids.MODEL:
            self._model = None
        elif event.type == links.TYPE:
            self._links_position = self._links = None
        self._xref_sources.clear()
        self._prefetched_members.clear()
        if xref_target(event) is not None:
            self._has_pointers = True

    def set_written(self) -> None:
        """Notes that the transaction has written everything it appended."""
        self._unwritten_collections.clear()
        self._schemas.set_written()

    def release(self) -> None:
        """Keeps the added events, whatever `roll_back` undoes later."""
        self.schema_ids.release()
        self.version_chains.release()
        self._replaced_heads.clear()
        self._released = self._cached_state()

    def roll_back(self) -> None:
        """Drops the events added since the last `release`, because their command is undone."""
        self._schemas.forget()
        self.schema_ids.roll_back()
        self.version_chains.roll_back()
        for key, head in self._replaced_heads.items():
            if head is None:
                del self._stream_heads[key]
            else:
                self._stream_heads[key] = head
        self._replaced_heads.clear()
        self._model, self._links_position, self._links, self._has_pointers = self._released
        self._prefetched_members.clear()
        self._xref_sources.clear()

    def _cached_state(self) -> _CachedState:
        return _CachedState(self._model, self._links_position, self._links, self._has_pointers)

    def _write_appended(self, collection: str | None = None) -> None:
        """Writes appended events before a query that may find them. collection: if it finds only its members."""
        if self._unwritten_collections and (
            collection is None or xids.tree_key(collection) in self._unwritten_collections
        ):
            self._write()

    def _never_existed(self, xid: str) -> bool:
        """Whether an xid is known to have no event: its owner has none, or it has the character NUL, which PostgreSQL
        refuses even in a query. A log may have Groups and no event of the registry itself."""
        if "\0" in xid:
            return True
        owner = xids.parent(xid) or xids.REGISTRY
        return owner != xids.REGISTRY and _never_existed(self._stream_heads, owner)

    def _current_model(self) -> Model:
        key = xids.tree_key(xids.MODEL)
        # The hash is queried first: the model's text may be long, and the last compiled model is usually in the cache.
        head = self._stream_heads.get(key)
        hash = (
            head.hash
            if head is not None
            else self._model_hash or sql.scalar(self._connection, "SELECT hash FROM head WHERE tree_key = ?", (key,))
        )
        if not hash:
            return compile_model({})
        return self._model_cache.find(hash) or self._model_cache.put(hash, self._loaded_model())

    def _loaded_model(self) -> Model:
        entity = self.get(xids.MODEL)
        assert entity is not None, "the hash in head says that it lives"
        return Model.from_entity(entity)

    def _read_links(self) -> tuple[Link, ...]:
        entities = self.entities_outside_tree(links.COLLECTION)
        return tuple(Link.from_entity(entity, entity.position) for entity in entities)

    def _load(self, keys: set[str]) -> None:
        missing_keys = sorted(key for key in keys if key not in self._stream_heads)
        for chunk in sql.chunks(missing_keys):
            # An unfinished statement would keep the writer's connection at its moment after the end of a transaction.
            for row in sql.run(
                self._connection, HEADS_BY_KEY, (sql.list_parameter(self._connection, chunk),)
            ).fetchall():
                self._remember_row(row)
        self._stream_heads |= {key: NO_STREAM_HEAD for key in missing_keys if key not in self._stream_heads}

    def _past_entity(self, revision: int | None, position: int, topic: str, state: bytes) -> Entity | None:
        return (
            None
            if revision is None
            else evolve(self._mapper.event(topic, revision, self._read_state(position, state)), position)
        )

    def _pages(self, statement: str, key_range: tuple[str, str], *type: str) -> Iterator[Entity]:
        """Live entities in a range of tree keys. type: if the statement has one."""
        start_key, end_key = key_range
        while True:
            parameters = (*type, start_key, end_key, sql.CHUNK)
            page = sql.run(self._connection, statement, parameters).fetchall()
            yield from map(self._remember_live, page)
            if len(page) < sql.CHUNK:
                return
            start_key = page[-1][0]

    def _remember_live(self, row: Any) -> Entity:
        entity = self._remember_row(row)
        assert entity is not None, "the statement asks for live ones"
        return entity

    def _remember_row(self, row: Any) -> Entity | None:
        key, revision, hash, position, topic, state = row
        head = self._stream_heads.get(key)
        if head is None or head.revision != revision:
            event = self._mapper.event(topic, revision, decompress_state(state)) if hash else None
            head = self._stream_heads[key] = StreamHead(revision, require_bytes(hash), event, position)
        return head.entity


def _never_existed(heads: Mapping[str, StreamHead], xid: str) -> bool:
    return heads.get(xids.tree_key(xid)) is NO_STREAM_HEAD


def _write_nothing() -> None:
    """What a world writes that belongs to no transaction."""


def _no_document(sha256: str) -> None:
    """The unwritten document of a world that belongs to no transaction."""


def _collection_key(key: str) -> str:
    """The tree key of the collection that an entity is in."""
    return key.rpartition("!")[0]
