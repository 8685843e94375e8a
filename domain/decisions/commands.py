"""Commands: what callers request. Each command that results in events is one interaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from annals.domain.compat.request_extras import LegacyDeletion, LegacyWrite
from annals.domain.confluent.commands import ConfluentCommand
from annals.domain.confluent.import_commands import ImportCommand
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.values.json_text import Json

#: The `ignore` values that a command may carry (FLAG table of core 1.0-rc4, "Ignore Flag").
IGNORES = ("capabilities", "defaultversionid", "defaultversionsticky", "epoch", "id", "modelsource", "readonly")


class WriteMethod(StrEnum):
    """How a write treats what it does not mention (HTTP binding, "Creating or Updating Entities").

    PUT replaces the entity that the path names. PATCH merges one level deep, also for each entry of a collection. POST
    creates or replaces the members of a collection, or adds a Version to a Resource.
    """

    PUT = "PUT"
    PATCH = "PATCH"
    POST = "POST"


@dataclass(frozen=True, slots=True)
class WriteTree:
    """Create or update the entity or collection at `xid`, with everything nested in `tree`.

    xid: an entity (`/`, `/dirs/d1`, `.../files/f1`, `.../f1/meta`, `.../versions/v1`) or a collection (`/dirs`,
        `/dirs/d1/files`, `.../f1/versions`). Its types exist in the model; otherwise the caller has already answered
        404.
    tree: the parsed JSON object; for a document write, the attributes from its headers. The decision owns it and takes
        nested collections apart, because otherwise an import of many entities would be in memory twice.
    document: bytes of a document write (a Resource or Version whose body is its document), else None. `tree` then has
        `contenttype`, None if the request has no content type; a map that is present is complete.
    mediatype: media type of the request, used as `contenttype` where ENT-123 says so.
    setdefaultversionid: the flag's raw value; None when absent.
    keepids: Versions keep the ids from another registry, even if their type does not let clients choose ids.
    facade: what a legacy API adds. Then `tree` is that of a Group (PUT), whose attributes that the API does not know
        stay unchanged, or that of a new Version (POST to a Resource).
    """

    xid: str
    tree: Mapping[str, Json]
    method: WriteMethod
    document: bytes | None = None
    mediatype: str = "application/json"
    ignore: frozenset[str] = frozenset()
    setdefaultversionid: str | None = None
    keepids: bool = False
    facade: LegacyWrite | None = None


@dataclass(frozen=True, slots=True)
class DeleteEntities:
    """Delete the entity at `xid`, or members of the collection at `xid`.

    targets: the body of a collection's DELETE. None deletes all members, a map those that it names (`{}` none).
    epoch: the flag's raw value on a single entity; None when absent.
    facade: set by a legacy API, which deletes a Group, a Resource, all of a Group, or the Version with a number.
    """

    xid: str
    targets: Mapping[str, Json] | None = None
    epoch: str | None = None
    ignore: frozenset[str] = frozenset()
    setdefaultversionid: str | None = None
    facade: LegacyDeletion | None = None


@dataclass(frozen=True, slots=True)
class ReplaceModel:
    """Replace the model; `source` is a modelsource document (`PUT /modelsource`)."""

    source: Json


@dataclass(frozen=True, slots=True)
class WriteCapabilities:
    """Replace all capabilities (PUT) or only the given ones (PATCH)."""

    capabilities: Json
    method: WriteMethod


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore the entities at and below `xid` that existed at a log position, and delete those that did not.

    xid: an entity, a collection, a meta, `/model` or `/capabilities`.
    include: for `/` only: which of `model` and `capabilities` are restored too.
    """

    xid: str
    position: int
    include: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreateRegistry:
    """The first interaction of an empty log: creates the registry entity, its capabilities and its first model."""

    registryid: str
    source: Json


@dataclass(frozen=True, slots=True)
class WriteSubscription:
    """Create the subscription at `xid`, or replace the existing one.

    attributes: its public form, checked and with defaults. secrets: secret values by name. missing_secrets, dropped,
    place: see `SubscriptionDocument`. starttime: the first position after `config.starttime`. groups: the places that
    its caller may read by its credential alone; None for the whole registry. claims: words of the credential that
    grants can name. max_owned: the maximum number of subscriptions per owner.
    """

    xid: str
    is_new: bool
    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    missing_secrets: frozenset[str] = frozenset()
    dropped_secrets: frozenset[str] = frozenset()
    secret_binding: tuple[object, ...] = ()
    starttime: int | None = None
    groups: tuple[str, ...] | None = None
    claims: tuple[str, ...] = ()
    max_owned: int = 1000


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """Delete the subscription at `xid`."""

    xid: str


@dataclass(frozen=True, slots=True)
class ControlSubscription:
    """A control action on the deliveries of the subscription at `xid`.

    name: `pause`, `resume`, `verify`, `replay`, `redeliver` or `discard`. arguments: those of the action, such as
    `{"from": 1, "to": 9}`. is_stopped: whether deliveries stopped for a reason other than a pause; then `resume` has an
    effect without a pause.
    """

    xid: str
    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class WriteLink:
    """Create the replication link at `xid`, or replace the existing one.

    attributes: its public form, checked and with defaults. secrets: secret values by name.
    """

    xid: str
    is_new: bool
    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class DeleteLink:
    """Delete the link at `xid`; the entities that it delivered stay."""

    xid: str


@dataclass(frozen=True, slots=True)
class ControlLink:
    """A control action on the link at `xid`.

    name: `promote`, `pause`, `resume`, or `repaired` once a `Repair` is recorded, so that the link's worker restarts.
    """

    xid: str
    name: str


@dataclass(frozen=True, slots=True)
class CreateKey:
    """Create the API key at `xid`. hash: SHA-256 of its text, in hex. attributes: checked, without defaults."""

    xid: str
    attributes: Mapping[str, Json]
    hash: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RotateKey:
    """Give the API key at `xid` a new text. grace: seconds for which the text before stays good."""

    xid: str
    hash: str = field(repr=False)
    grace: int = 0


@dataclass(frozen=True, slots=True)
class RevokeKey:
    """End the API key at `xid`."""

    xid: str


@dataclass(frozen=True, slots=True)
class WriteGrant:
    """Create the grant at `xid`, or replace the existing one. attributes: checked. must_be_new: nothing is replaced."""

    xid: str
    must_be_new: bool
    attributes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DeleteGrant:
    """End the grant at `xid`."""

    xid: str


@dataclass(frozen=True, slots=True)
class Follow:
    """Append interactions of another registry's log unchanged and in order; those that are already here are skipped.

    xid: of the link that delivers them.
    """

    xid: str
    interactions: tuple[ForeignInteraction, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """Set entities to the state that they have in the registry of their origin.

    xid: of the link that delivered them. position: of this registry's log, when the two were compared. entities: their
    last events in the other log. deleted_xids: xids that never existed there. documents: bytes that events refer to, by
    SHA-256 in hex.
    """

    xid: str
    position: int
    entities: tuple[EntityEvent, ...]
    deleted_xids: tuple[str, ...] = ()
    documents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


AccessCommand = CreateKey | RotateKey | RevokeKey | WriteGrant | DeleteGrant
LinkCommand = WriteLink | DeleteLink | ControlLink
SubscriptionCommand = WriteSubscription | DeleteSubscription | ControlSubscription
RegistryCommand = (
    WriteTree
    | DeleteEntities
    | ReplaceModel
    | WriteCapabilities
    | Restore
    | CreateRegistry
    | ConfluentCommand
    | ImportCommand
)
#: A command whose events this registry decides.
Command = RegistryCommand | SubscriptionCommand | AccessCommand | LinkCommand | Repair
#: A command that the writer carries out; the events of `Follow` have been decided by another registry.
SubmittedCommand = Command | Follow


def describe(command: SubmittedCommand) -> str:
    """A short text for the audit trail, for instance `WriteTree PUT /dirs/d1` or `Restore /dirs/d1 12`."""
    names = ("name", "method", "xid", "position")
    words = (type(command).__name__, *(getattr(command, name, None) for name in names))
    return " ".join(str(word) for word in words if word)
