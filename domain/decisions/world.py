"""World, the port through which decisions read the registry, and what goes in and out of a decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from annals.domain.access.roles import ANONYMOUS, Caller, Role
from annals.domain.compat.publications import Publications
from annals.domain.confluent.schema_index import SchemaIds, SchemaIndex
from annals.domain.confluent.subjects import DEFAULT_CONTEXT_IDS, ContextIds
from annals.domain.decisions.checks.document_checks import CheckResults, DocumentCheck
from annals.domain.decisions.phases import ReportPhase
from annals.domain.decisions.version_chains import VersionChains
from annals.domain.model import Model
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.link import Link
from annals.domain.values.json_text import differing_names

#: Whether rules beyond the model are skipped, are counted, or refuse a command.
DomainValidation = Literal["off", "warn", "strict"]


@dataclass(frozen=True, slots=True)
class Context:
    """The values that one interaction shares: its time, its correlation id, the caller and its role at the target.

    domainvalidation: the effect of the rules of `annals.domain.messaging.findings`. position: of the log's last event
    before this interaction. report_phase: receives how far the command is. context_ids: which Groups stand for contexts
    of Confluent's API.
    """

    now: datetime
    xregcorrelationid: str
    caller: Caller = ANONYMOUS
    role: Role = Role.WRITER
    domainvalidation: DomainValidation = "warn"
    position: int = 0
    report_phase: ReportPhase | None = None
    context_ids: ContextIds = DEFAULT_CONTEXT_IDS


@dataclass(frozen=True, slots=True)
class StreamDifference:
    """A stream with events since a position.

    xid: as its last event spells it. past, present: its entity at the position and now; None if there is none.
    """

    xid: str
    past: Entity | None
    present: Entity | None


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


def changed_members(before: Mapping[str, Any], after: Mapping[str, Any], secrets: Iterable[Secret]) -> tuple[str, ...]:
    """The names of the members that differ, including those that differ only in a secret."""
    return tuple(sorted(differing_names(before, after) | {secret.name.partition(".")[0] for secret in secrets}))


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a command.

    events: in the order in which the log holds them (EV-77); empty when nothing changed.
    documents: new document bytes by SHA-256 in hex.
    processed: xids of the entities that the request named, in its order; the response shows them.
    findings: the number of findings by rules beyond the model in what the command wrote.
    secrets: values to store, and values to destroy.
    number: of the Version that a legacy API wrote, or that existed already.
    deleted_numbers: of the versions that Confluent's API deleted.
    version_chains: the Versions of some Resources after the command, see `World.version_chain`.
    """

    events: tuple[EntityEvent, ...]
    documents: dict[str, bytes]
    processed: tuple[str, ...] = ()
    findings: int = 0
    secrets: tuple[Secret, ...] = ()
    number: int | None = None
    deleted_numbers: tuple[int, ...] = ()
    version_chains: VersionChains = field(default_factory=dict)


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

    def version_chain(self, resource: str) -> Sequence[str] | None:
        """The ids of all Versions of a Resource, the oldest first, if they are known without reading them.

        Only of a Resource whose Versions are a chain: one is a root, and the ancestor of each other is the one before
        it. So `maxversions` removes them in this order.
        """

    def prefetch_members(self, collections: Iterable[str]) -> None:
        """Announces collections whose members will be read, so that a store can read them in few queries."""

    def count(self, collection: str) -> int:
        """The number of live entities in one collection."""

    def subtree(self, xid: str) -> Iterator[Entity]:
        """The live entities below an entity, by tree key, without itself and without entities outside the tree."""

    def entities_of_type(self, type: str) -> Iterator[Entity]:
        """Every live entity of a type (`dirs.files`), by tree key."""

    def differences(self, xid: str, position: int) -> Iterator[StreamDifference]:
        """The streams at and below an entity or collection that have events after a position, by tree key.

        Those of the model and the capabilities are below the registry; entities outside the tree are not. All other
        streams are unchanged since the position.
        """

    def entities_outside_tree(self, collection: str) -> Iterator[Entity]:
        """The live entities of a collection outside the registry's tree (`/-/keys`), by tree key."""

    def xref_sources(self, xid: str) -> Sequence[str]:
        """The xids of the live Resources whose `meta.xref` names this one."""

    def prefetch_xref_sources(self, names: Iterable[str]) -> None:
        """Announces Resources whose sources will be read, so that a store can read them in one query."""

    def document(self, sha256: str) -> bytes:
        """The bytes of a stored document."""

    @property
    def publications(self) -> Publications:
        """The published Versions, as the legacy APIs see them."""

    @property
    def schemas(self) -> SchemaIndex:
        """The versions that Confluent's API shows."""

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids of contents of these versions; unlike `schemas`, it costs nothing to have."""

    @property
    def links(self) -> Sequence[Link]:
        """All replication links."""

    def secret(self, secret: Secret) -> str | None:
        """The value of a secret reference; None if it is destroyed or cannot be decrypted."""

    def check_results(self, document_checks: frozenset[DocumentCheck], documents: Mapping[str, bytes]) -> CheckResults:
        """The results of document checks. documents: bytes that are not stored yet, by SHA-256.

        Raises: ChecksRequired.
        """


def event_members(xid: str, type: str, epoch: int, world: World, context: Context) -> dict[str, Any]:
    """The members of an event that follow from its entity and its interaction."""
    return {
        "xid": xid,
        "type": type,
        "revision": world.revision(xid) + 1,
        "epoch": epoch,
        "xregcorrelationid": context.xregcorrelationid,
        "time": context.now,
    }
