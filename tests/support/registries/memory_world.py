"""World and Publications in memory: tests decide on them, and compare the SQL implementations with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from annals.domain.compat.legacy_apis import LegacyApi, legacy_api_of, version_number
from annals.domain.compat.publications import (
    Publication,
    Publications,
    PublishedVersion,
    affects_publications,
    fold_publications,
)
from annals.domain.confluent.schema_index import SchemaIds, SchemaIndex
from annals.domain.confluent.schema_versions import SchemaVersion, fold_schema_versions
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import VERSIONS_TYPE
from annals.domain.decisions.checks import document_checks
from annals.domain.decisions.checks.document_checks import CheckResults, DocumentCheck
from annals.domain.decisions.version_chains import broken_chain
from annals.domain.decisions.world import Secret, StreamDifference
from annals.domain.model import Model, compile_model
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityEvent
from annals.domain.registry.evolve import evolve
from annals.domain.replication import link as links
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids


class CurrentModel:
    """The model in force, compiled again when its entity changes."""

    def __init__(self) -> None:
        self._last: tuple[int, Model] | None = None

    def of(self, entity: Entity | None) -> Model:
        """The model of the entity that holds it; the empty model for None."""
        if entity is None:
            return compile_model({})
        if self._last is None or self._last[0] != entity.revision:
            self._last = entity.revision, Model.from_entity(entity)
        return self._last[1]


class MemoryWorld:
    """A World over dicts: the result of a fold over events."""

    def __init__(self, events: Iterable[EntityEvent] = ()) -> None:
        self._entities: dict[str, Entity] = {}
        self._revisions: dict[str, int] = {}
        self._documents: dict[str, bytes] = {}
        self._secrets: dict[str, Secret] = {}
        self.version_chains: dict[str, tuple[str, ...]] = {}
        self._model = CurrentModel()
        self._log: list[EntityEvent] = []
        self.extend(events)

    def extend(
        self,
        events: Iterable[EntityEvent],
        documents: dict[str, bytes] | None = None,
        secrets: Iterable[Secret] = (),
    ) -> None:
        """Applies events in log order."""
        self._documents.update(documents or {})
        self._secrets.update({secret.reference: secret for secret in secrets})
        for event in events:
            self._log.append(event)
            self._revisions[event.stream] = event.revision
            self.version_chains.pop(broken_chain(event) or "", None)
            entity = evolve(event, len(self._log))
            if entity is None:
                self._entities.pop(event.stream, None)
            else:
                self._entities[event.stream] = entity

    @property
    def model(self) -> Model:
        return self._model.of(self._entities.get(xids.MODEL))

    def prefetch(self, names: Iterable[str]) -> None:
        pass

    def get(self, xid: str) -> Entity | None:
        return self._entities.get(xids.stream(xid))

    def revision(self, xid: str) -> int:
        return self._revisions.get(xids.stream(xid), 0)

    def members(self, collection: str) -> Sequence[Entity]:
        depth = len(xids.segments(collection)) + 1
        return [entity for entity in self._below(collection) if len(xids.segments(entity.xid)) == depth]

    def count(self, collection: str) -> int:
        return len(self.members(collection))

    def subtree(self, xid: str) -> Iterator[Entity]:
        return (entity for entity in self._below(xid) if not xids.is_outside_tree(xids.stream(entity.xid)))

    def _below(self, xid: str) -> Iterator[Entity]:
        low, high = xids.subtree(xid)
        for key, entity in sorted((xids.tree_key(name), entity) for name, entity in self._entities.items()):
            if low <= key < high and entity.xid not in xids.ROOT_STREAMS:
                yield entity

    def entities_of_type(self, type: str) -> Iterator[Entity]:
        for entity in self.subtree(xids.REGISTRY):
            if entity.type == type:
                yield entity

    def differences(self, xid: str, position: int) -> Iterator[StreamDifference]:
        then = {event.stream: (event, number) for number, event in enumerate(self._log[:position], 1)}
        since = {event.stream: event.xid for event in self._log[position:]}
        low, high = xids.tree_key(xid), xids.subtree(xid)[1]
        for stream in sorted(since, key=xids.tree_key):
            if low <= xids.tree_key(stream) < high and not xids.is_outside_tree(stream):
                lived = evolve(*then[stream]) if stream in then else None
                yield StreamDifference(since[stream], lived, self._entities.get(stream))

    def entities_outside_tree(self, collection: str) -> Iterator[Entity]:
        low, high = xids.subtree(collection)
        found = (entity for entity in self._entities.values() if low <= xids.tree_key(entity.xid) < high)
        yield from sorted(found, key=lambda entity: xids.tree_key(entity.xid))

    def version_chain(self, resource: str) -> Sequence[str] | None:
        return self.version_chains.get(xids.stream(resource))

    def xref_sources(self, xid: str) -> Sequence[str]:
        found = self._entities.values()
        return [entity.xid for entity in found if entity.attributes.get("meta", {}).get("xref") == xid]

    def prefetch_members(self, collections: Iterable[str]) -> None:
        """Nothing, because everything is in memory."""

    def prefetch_xref_sources(self, names: Iterable[str]) -> None:
        pass

    def document(self, sha256: str) -> bytes:
        return self._documents[sha256]

    @property
    def publications(self) -> Publications:
        return MemoryPublications(self._log)

    @property
    def schemas(self) -> SchemaIndex:
        return MemorySchemas(self._log)

    @property
    def schema_ids(self) -> SchemaIds:
        return MemorySchemas(self._log)

    @property
    def links(self) -> Sequence[Link]:
        found = (entity for entity in self._entities.values() if entity.type == links.TYPE)
        return [Link.from_entity(entity, entity.position) for entity in found]

    def secret(self, secret: Secret) -> str | None:
        found = self._secrets.get(secret.reference)
        same = found is not None and (found.owner, found.name) == (secret.owner, secret.name)
        return found.value if found is not None and same else None

    def check_results(self, questions: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> CheckResults:
        """See World; the checks run immediately."""
        known = {**self._documents, **documents}

        def parse(document: document_checks.FormatCheck) -> object:
            return document_checks.parse_document(document, known[document.sha256 or ""])

        return {question: document_checks.run_check(question, parse) for question in questions}

    def entities(self) -> Iterator[Entity]:
        """All live entities, in the order of EV-77."""
        yield from sorted(self._entities.values(), key=lambda entity: xids.event_order(entity.xid))


class MemorySchemas:
    """Implements `SchemaIndex` over a log in memory. Each look-up reads the whole log."""

    def __init__(self, log: Sequence[EntityEvent]) -> None:
        """log: all events, from position 1 on."""
        streams: dict[str, list[tuple[int, EntityEvent]]] = {}
        for position, event in enumerate(log, 1):
            if event.type == VERSIONS_TYPE:
                streams.setdefault(event.stream, []).append((position, event))
        self._all = [row for events in streams.values() for row in fold_schema_versions(events)]
        self._rows = [row for row in self._all if row.gone is None]

    def versions(self, group: str, subject: str) -> Sequence[SchemaVersion]:
        found = [row for row in self._rows if row.is_listed and (row.group, row.subject) == (group, subject)]
        return sorted(found, key=lambda row: row.number)

    def versions_of(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Sequence[SchemaVersion]]:
        return {subject: self.versions(*subject) for subject in subjects}

    def subject_versions(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], SubjectVersions]:
        return {subject: SubjectVersions(self.versions(*subject)) for subject in subjects}

    def by_key(self, key: str) -> Sequence[SchemaVersion]:
        return sorted((row for row in self._rows if row.key == key), key=lambda row: -row.since)

    def by_id(self, id: int) -> Sequence[SchemaVersion]:
        return sorted((row for row in self._rows if row.id == id), key=lambda row: row.since)

    def by_ids(self, ids: Collection[int]) -> Mapping[int, Sequence[SchemaVersion]]:
        return {id: self.by_id(id) for id in ids}

    def by_guid(self, guid: str) -> Sequence[SchemaVersion]:
        return sorted((row for row in self._rows if row.guid == guid), key=lambda row: row.since)

    def sole_ids(self, keys: Collection[str]) -> Mapping[str, int | None]:
        ids = {key: {row.id for row in self._all if row.key == key} for key in keys}
        keys_by_id: dict[int, set[str]] = {}
        for row in self._all:
            keys_by_id.setdefault(row.id, set()).add(row.key)
        return {
            key: min(found) if len(found) == 1 and len(keys_by_id[min(found)]) == 1 else None
            for key, found in ids.items()
            if found
        }

    def ids_of_keys(self, keys: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        found = sorted((row for row in self._all if row.key in keys), key=lambda row: -row.since)
        return {key: [(row.group, row.id) for row in found if row.key == key] for key in keys}

    def highest_id(self) -> int:
        return max((row.id for row in self._all), default=0)

    def referrers(self, group: str, subject: str, number: int, qualified: str = "") -> Sequence[SchemaVersion]:
        return [
            row
            for row in self._rows
            for reference in row.references
            if row.is_listed
            and reference.version == number
            and (reference.subject == qualified or (row.group, reference.subject) == (group, subject))
        ]

    def names_at(self, resource: str) -> Sequence[str]:
        at_resource = [row for row in self._rows if row.is_listed and row.resource.lower() == resource.lower()]
        return list(dict.fromkeys(row.subject for row in at_resource))

    def has_versions(self, group: str) -> bool:
        return any(row.group == group for row in self._rows)

    def listed(self, groups: Iterable[str]) -> Iterable[SchemaVersion]:
        names = set(groups)
        return [row for row in self._rows if row.is_listed and row.group in names]


class MemoryPublications:
    """Implements `Publications` over a log in memory. Each look-up reads the whole log."""

    def __init__(self, log: Sequence[EntityEvent]) -> None:
        """log: all events, from position 1 on."""
        self._log = log

    def all(self) -> Iterator[Publication]:
        """Every publication that ever existed, ordered by tree key and creation position."""
        streams: dict[str, list[tuple[int, EntityEvent]]] = {}
        for position, event in enumerate(self._log, 1):
            streams.setdefault(event.stream, []).append((position, event))
        for stream in sorted(streams, key=xids.tree_key):
            if any(affects_publications(event) for _, event in streams[stream]):
                yield from fold_publications(streams[stream])

    def retained_versions(self, xid: str) -> Sequence[Publication]:
        low, high = xids.tree_key(xid), xids.subtree(xid)[1]
        return [one for one in self.all() if one.is_retained and low <= xids.tree_key(one.xid) < high]

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        return next((one for one in self._standing(family) if one.uri == uri), None)

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        return next((one for one in self._standing(family) if one.id == id), None)

    def by_document(self, definition: str, sha256: str, *, has_retained: bool) -> Sequence[PublishedVersion]:
        live = MemoryWorld(self._log).members(f"{definition}/versions")
        found = [PublishedVersion(version_number(entity.id, entity.private), entity) for entity in live]
        found += [PublishedVersion(one.number, self.pruned_entity(one)) for one in self.retained_versions(definition)]
        return [one for one in found if one.entity.document == sha256]

    def pruned_entity(self, kept: Publication) -> Entity:
        assert kept.since is not None, "it was pruned"
        entity = evolve(self._log[kept.since - 1], kept.since)
        assert entity is not None, "it lived"
        return entity

    def _standing(self, family: LegacyApi) -> Iterator[Publication]:
        return (one for one in self.all() if one.gone is None and legacy_api_of(one.xid) == family)
