"""The registry as decisions see it, in memory that does not grow with the log: Groups can be forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.compat.publications import NoPublications, Publications
from annals.domain.confluent.checks import ContentCheck
from annals.domain.confluent.facts import facts_of
from annals.domain.confluent.schema_index import NoSchemas, SchemaIndex
from annals.domain.confluent.schema_versions import SchemaVersion, fold_schema_versions
from annals.domain.confluent.subjects import GROUPS, VERSIONS_TYPE
from annals.domain.decisions.checks.document_checks import (
    CheckResults,
    DocumentCheck,
    FormatCheck,
    parse_document,
    run_check,
)
from annals.domain.decisions.world import Secret, StreamDifference
from annals.domain.model import Model, compile_model
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityEvent
from annals.domain.registry.evolve import evolve
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids

#: The hash of an entity that does not exist.
_NONE: Final = b""


@dataclass(slots=True)
class _Part:
    """A Group with all entities in it, or what is outside of Groups. It is forgotten as a whole.

    collections: members by stream, by the collection's name. known: revision and hash by stream, those of deleted
    entities too. schemas: the rows of Versions as versions of subjects, by stream. streams: of a subject, by its name.
    """

    collections: defaultdict[str, dict[str, Entity]] = field(default_factory=lambda: defaultdict(dict))
    known: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    schemas: dict[str, list[SchemaVersion]] = field(default_factory=dict)
    streams: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


class MemoryWorld:
    """A World in memory, in which all documents are valid, no Resource has an xref, and no Version is ever pruned.

    live: the number of entities in memory. What no history needs raises an error, because a wrong answer would give
    another log than that of a registry.
    """

    def __init__(self) -> None:
        self.live = 0
        self._parts: defaultdict[str, _Part] = defaultdict(_Part)
        self.model = compile_model({})
        self.schema_ids = MemorySchemaIds()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "model"}  # which has functions

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        entity = self.get(xids.MODEL)
        self.model = Model.from_entity(entity) if entity else compile_model({})

    def entities_outside_tree(self, collection: str) -> Iterator[Entity]:
        raise AssertionError("histories have no keys and no grants")

    def take(self, event: EntityEvent, position: int, hash: bytes) -> None:
        """Applies the next event. hash: of the entity after it, empty if there is none."""
        stream = event.stream
        self._part(stream).known[stream] = (event.revision, hash)
        if event.type == VERSIONS_TYPE:
            self._take_schema(event, position)
        members = self._members(_collection(stream))
        self.live -= members.pop(stream, None) is not None
        if (entity := evolve(event, position)) is not None:
            members[stream] = entity
            self.live += 1
            self.schema_ids.take(event)
            if event.xid == xids.MODEL:
                self.model = Model.from_entity(entity)

    def _take_schema(self, event: EntityEvent, position: int) -> None:
        part = self._part(event.stream)
        rows = {row.since: row for row in part.schemas.get(event.stream, ())}
        rows |= {row.since: row for row in fold_schema_versions([(position, event)], rows.values())}
        part.schemas[event.stream] = listed = [row for row in rows.values() if row.is_listed]
        for row in listed:
            part.streams[row.subject].add(event.stream)

    def hash(self, xid: str) -> bytes:
        """The hash of the live entity with an xid; empty if there is none."""
        stream = xids.stream(xid)
        return self._part(stream).known.get(stream, (0, _NONE))[1]

    def forget(self, xid: str) -> None:
        """Removes a Group with all its entities from memory. No later command may name it."""
        stream = xids.stream(xid)
        gone = self._parts.pop(stream)
        self.live -= sum(map(len, gone.collections.values()))
        self.live -= self._members(_collection(stream)).pop(stream, None) is not None

    # --- the protocol World ---------------------------------------------------------------------------------------

    def prefetch(self, names: Iterable[str]) -> None:
        pass

    def get(self, xid: str) -> Entity | None:
        stream = xids.stream(xid)
        return self._members(_collection(stream)).get(stream)

    def revision(self, xid: str) -> int:
        stream = xids.stream(xid)
        return self._part(stream).known.get(stream, (0, _NONE))[0]

    def members(self, collection: str) -> Sequence[Entity]:
        found = self._members(xids.stream(collection))
        return [found[stream] for stream in sorted(found)]

    def count(self, collection: str) -> int:
        return len(self._members(xids.stream(collection)))

    def subtree(self, xid: str) -> Iterator[Entity]:
        below = f"{xids.stream(xid)}/"
        part = self._part(below[:-1])
        found = [each for name, each in part.collections.items() if name.startswith(below)]
        named = sorted((xids.tree_key(stream), entity) for members in found for stream, entity in members.items())
        return (entity for _, entity in named)

    def xref_sources(self, xid: str) -> Sequence[str]:
        return ()

    def version_chain(self, resource: str) -> Sequence[str] | None:
        return None  # none is ever pruned

    def prefetch_members(self, collections: Iterable[str]) -> None:
        """Nothing, because everything is in memory."""

    def prefetch_xref_sources(self, names: Iterable[str]) -> None:
        pass

    def check_results(self, questions: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> CheckResults:
        def parse(check: FormatCheck) -> object:
            return parse_document(check, documents[check.sha256 or ""])

        return {check: run_check(check, parse) if isinstance(check, ContentCheck) else () for check in questions}

    def entities_of_type(self, type: str) -> Iterator[Entity]:
        return iter(())  # needed for a new model only, which here precedes all entities

    def differences(self, xid: str, position: int) -> Iterator[StreamDifference]:
        raise LookupError("no history restores anything")

    def document(self, sha256: str) -> bytes:
        raise LookupError("no history reads a document")

    @property
    def publications(self) -> Publications:
        return NoPublications()

    @property
    def schemas(self) -> SchemaIndex:
        return _MemorySchemas(self._parts)

    @property
    def links(self) -> Sequence[Link]:
        return ()

    def secret(self, secret: Secret) -> str | None:
        raise LookupError("no history has secrets")

    def _part(self, name: str) -> _Part:
        """The part that has a stream or a collection."""
        return self._parts["/".join(name.split("/", 3)[:3])]

    def _members(self, collection: str) -> dict[str, Entity]:
        return self._part(collection).collections[collection]


class _MemorySchemas(NoSchemas):
    """The versions of subjects in the Groups in memory."""

    def __init__(self, parts: Mapping[str, _Part]) -> None:
        self._parts = parts

    def versions(self, group: str, subject: str) -> Sequence[SchemaVersion]:
        part = self._parts[xids.stream(f"/{GROUPS}/{group}")]
        rows = (row for stream in part.streams.get(subject, ()) for row in part.schemas[stream])
        found = [row for row in rows if (row.group, row.subject) == (group, subject)]
        return sorted(found, key=lambda row: row.number)


class MemorySchemaIds:
    """The ids of all contents, also of those in forgotten Groups: a registry keeps them for ever."""

    def __init__(self) -> None:
        self._ids: dict[bytes, tuple[tuple[str, int], ...]] = {}
        self._highest = 0

    def take(self, event: EntityEvent) -> None:
        """Adds the id that an event gives to a content."""
        facts = facts_of(event.private)
        if "key" in facts:
            key, found = bytes.fromhex(facts["key"]), (xids.segments(event.xid)[1], facts["id"])
            if found not in (known := self._ids.get(key, ())):
                self._ids[key] = (found, *known)
            self._highest = max(self._highest, facts["id"])

    def ids_of_keys(self, keys: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        return {key: self._ids.get(bytes.fromhex(key), ()) for key in keys}

    def highest_id(self) -> int:
        return self._highest


def _collection(stream: str) -> str:
    return stream.rpartition("/")[0]
