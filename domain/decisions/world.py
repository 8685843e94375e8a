"""World, the port through which decisions read the registry, and MemoryWorld, its implementation in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from domain.access.roles import Role
from domain.compat.memory_publications import MemoryPublications
from domain.compat.publications import Publications
from domain.decisions import document_checks
from domain.decisions.document_checks import CheckResults, DocumentCheck
from domain.model import Model, compile_model
from domain.registry.entities import Entity
from domain.registry.events import EntityEvent
from domain.registry.evolve import evolve
from domain.replication import link as links
from domain.replication.link import Link
from domain.values import xid as xids

#: Whether rules beyond the model are skipped, are counted, or refuse a command.
DomainValidation = Literal["off", "warn", "strict"]


def can_read_everything(xid: str) -> bool:
    """The read permission of a caller that sees everything."""
    return True


@dataclass(frozen=True, slots=True)
class Context:
    """The values that one interaction shares: its time, its correlation id, the caller and its role at the target.

    domainvalidation: the effect of the rules of `domain.messaging.findings`. reads: whether the caller may see an
    entity.
    position: of the log's last event before this interaction. link: id of the link that writes; empty for all other
    callers.
    """

    now: datetime
    xregcorrelationid: str
    caller: str = "anonymous"
    role: Role = Role.WRITER
    domainvalidation: DomainValidation = "warn"
    reads: Callable[[str], bool] = can_read_everything
    position: int = 0
    link: str = ""


@dataclass(frozen=True, slots=True)
class StreamDifference:
    """A stream with events since a position: its entity then and its entity now, either of which may be None.

    xid: as its last event spells it.
    """

    xid: str
    then: Entity | None
    now: Entity | None


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that the log only refers to.

    owner: xid of the entity that has it; name: its name there. Both are sealed with the value. value: None once it is
    destroyed.
    """

    reference: str
    owner: str
    name: str
    value: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a command.

    events: in the order in which the log holds them (EV-77); empty when nothing changed.
    documents: new document bytes by SHA-256 in hex.
    processed: xids of the entities that the request named, in its order; the response shows them.
    findings: the number of findings by rules beyond the model in what the command wrote.
    secrets: values to store, and values to destroy.
    number: of the Version that a legacy API wrote, or that existed already.
    """

    events: tuple[EntityEvent, ...]
    documents: dict[str, bytes]
    processed: tuple[str, ...] = ()
    findings: int = 0
    secrets: tuple[Secret, ...] = ()
    number: int | None = None


class World(Protocol):
    """The registry as decisions read it, inside the write lock."""

    @property
    def model(self) -> Model:
        """The model in force."""

    def prefetch(self, names: Iterable[str]) -> None:
        """Announces entities that will be read, so that a store can read them in one query."""

    def get(self, xid: str) -> Entity | None:
        """The live entity in the stream of an xid. Its own xid may differ from the given one, but only in case."""

    def revision(self, xid: str) -> int:
        """Number of the last event in the stream of an xid, 0 if there is none; a deleted entity keeps its number."""

    def members(self, collection: str) -> Sequence[Entity]:
        """The live entities of one collection (`/dirs`, `/dirs/d1/files`, `.../f1/versions`), by tree key."""

    def count(self, collection: str) -> int:
        """The number of live entities in one collection."""

    def subtree(self, xid: str) -> Iterator[Entity]:
        """The live entities below an entity, by tree key, without itself and without entities outside the tree."""

    def of_type(self, type: str) -> Iterator[Entity]:
        """Every live entity of a type (`dirs.files`), by tree key."""

    def differences(self, xid: str, position: int) -> Iterator[StreamDifference]:
        """The streams at and below an entity or collection that have events after a position, by tree key.

        Those of the model and the capabilities are below the registry; entities outside the tree are not. All other
        streams are unchanged since the position.
        """

    def sources(self, xid: str) -> Sequence[str]:
        """The xids of the live Resources whose `meta.xref` names this one."""

    def prefetch_sources(self, names: Iterable[str]) -> None:
        """Announces Resources whose sources will be read, so that a store can read them in one query."""

    def document(self, sha256: str) -> bytes:
        """The bytes of a stored document."""

    @property
    def published(self) -> Publications:
        """The published Versions, as the legacy APIs see them."""

    @property
    def links(self) -> Sequence[Link]:
        """All replication links."""

    def secret(self, secret: Secret) -> str | None:
        """The value of a secret reference; None if it is destroyed or cannot be decrypted."""

    def verdicts(self, questions: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> CheckResults:
        """The results of document checks. documents: bytes that are not stored yet, by SHA-256.

        Raises: ChecksRequired.
        """


class CurrentModel:
    """The model in force, compiled again when its entity changes."""

    def __init__(self) -> None:
        self._last: tuple[int, Model] | None = None

    def of(self, entity: Entity | None) -> Model:
        """The model of the entity that holds it; the empty model for None."""
        if entity is None:
            return compile_model({})
        if self._last is None or self._last[0] != entity.revision:
            source, full = entity.attributes["modelsource"], entity.attributes["model"]
            self._last = entity.revision, Model.load(source, full, entity.private.get("origins"))
        return self._last[1]


class MemoryWorld:
    """A World over dicts: tests decide against it, and it is the result of a fold over events."""

    def __init__(self, events: Iterable[EntityEvent] = ()) -> None:
        self._entities: dict[str, Entity] = {}
        self._revisions: dict[str, int] = {}
        self._documents: dict[str, bytes] = {}
        self._secrets: dict[str, Secret] = {}
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

    def of_type(self, type: str) -> Iterator[Entity]:
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

    def sources(self, xid: str) -> Sequence[str]:
        found = self._entities.values()
        return [entity.xid for entity in found if entity.attributes.get("meta", {}).get("xref") == xid]

    def prefetch_sources(self, names: Iterable[str]) -> None:
        pass

    def document(self, sha256: str) -> bytes:
        return self._documents[sha256]

    @property
    def published(self) -> Publications:
        return MemoryPublications(self._log)

    @property
    def links(self) -> Sequence[Link]:
        found = (entity for entity in self._entities.values() if entity.type == links.TYPE)
        return [Link.of(entity, entity.position) for entity in found]

    def secret(self, secret: Secret) -> str | None:
        found = self._secrets.get(secret.reference)
        same = found is not None and (found.owner, found.name) == (secret.owner, secret.name)
        return found.value if found is not None and same else None

    def verdicts(self, questions: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> CheckResults:
        """See World; the checks run immediately."""
        known = {**self._documents, **documents}

        def parse(document: document_checks.FormatCheck) -> object:
            return document_checks.parse_document(document, known[document.sha256 or ""])

        return {question: document_checks.run_check(question, parse) for question in questions}

    def entities(self) -> Iterator[Entity]:
        """All live entities, in the order of EV-77."""
        yield from sorted(self._entities.values(), key=lambda entity: xids.event_order(entity.xid))
