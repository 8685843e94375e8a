"""What callers ask for. A command that decides into events is an interaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.compat.request_extras import LegacyDeletion, LegacyWrite
from domain.registry.events import EntityEvent
from domain.replication.foreign_interaction import ForeignInteraction
from domain.values.json_text import Json

#: The `ignore` values that a command may carry (FLAG table of core 1.0-rc4, "Ignore Flag").
IGNORES = ("capabilities", "defaultversionid", "defaultversionsticky", "epoch", "id", "modelsource", "readonly")


class WriteMethod(StrEnum):
    """How a write treats what it does not mention (HTTP binding, "Creating or Updating Entities").

    PUT replaces the entity that the path names; PATCH merges one level deep, and so it does with each entry of a
    collection; POST creates or replaces the members of a collection, or adds a Version to a Resource.
    """

    PUT = "PUT"
    PATCH = "PATCH"
    POST = "POST"


@dataclass(frozen=True, slots=True)
class WriteTree:
    """Create or update the entity or collection at `xid`, with everything nested in `tree`.

    xid: an entity (`/`, `/dirs/d1`, `.../files/f1`, `.../f1/meta`, `.../versions/v1`) or a collection (`/dirs`,
        `/dirs/d1/files`, `.../f1/versions`). Its types exist in the model: the caller has answered 404 otherwise.
    tree: the parsed JSON object, handed over: deciding takes nested collections apart, because an import of many
        entities would otherwise be held twice; for a document write the attributes that its headers gave.
    document: bytes of a document write (a Resource or Version whose body is its document), else None. `tree` then has
        `contenttype`, None where the request had no content type, and a map is complete where it is present.
    mediatype: media type of the request, taken over as `contenttype` where ENT-123 says so.
    setdefaultversionid: the flag's raw value; None when absent.
    keepids: Versions keep the ids that another registry gave them, also where their type lets no client choose.
    facade: what an older API says beyond that. Then `tree` is that of a Group (PUT), whose attributes that the API does
        not know stay as they are, or of a new Version (POST to a Resource).
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

    targets: the body of a collection's DELETE: None deletes all members, a map those that it names (`{}` none).
    epoch: the flag's raw value on a single entity; None when absent.
    facade: of an older API, which deletes a Group, a Resource or all of a Group, or the Version of a number.
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
    """Replace the capabilities (PUT) or the given ones among them (PATCH)."""

    capabilities: Json
    method: WriteMethod


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring back what lived at `xid` and below it when the log ended at a position, and remove what did not.

    xid: an entity, a collection, a meta, `/model` or `/capabilities`.
    include: of `/` only: which of `model` and `capabilities` are brought back with it.
    """

    xid: str
    position: int
    include: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreateRegistry:
    """The first interaction of an empty log: the registry entity, its capabilities and its first model."""

    registryid: str
    source: Json


@dataclass(frozen=True, slots=True)
class WriteSubscription:
    """Create the subscription at `xid`, or replace the one that is there.

    attributes: its public form, checked and with defaults. secrets: secret values by name. needed, dropped, place: see
    `SubscriptionDocument`. starttime: the first position after `config.starttime`.
    groups: the xids of the Groups that its caller may read; None for the whole registry. most: how many subscriptions
    one owner may have.
    """

    xid: str
    new: bool
    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    needed: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    place: tuple[object, ...] = ()
    starttime: int | None = None
    groups: tuple[str, ...] | None = None
    most: int = 1000


@dataclass(frozen=True, slots=True)
class DeleteSubscription:
    """Delete the subscription at `xid`."""

    xid: str


@dataclass(frozen=True, slots=True)
class ControlSubscription:
    """Something that is done with the deliveries of the subscription at `xid`.

    name: `pause`, `resume`, `verify`, `replay`, `redeliver` or `discard`. arguments: what belongs to it, such as
    `{"from": 1, "to": 9}`. stopped: whether deliveries stand still for a reason of their own, so that `resume` has
    something to do without a pause.
    """

    xid: str
    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class WriteLink:
    """Create the replication link at `xid`, or replace the one that is there.

    attributes: its public form, checked and with defaults. secrets: secret values by name.
    """

    xid: str
    new: bool
    attributes: Mapping[str, Json]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class DeleteLink:
    """Delete the link at `xid`; what came over it stays."""

    xid: str


@dataclass(frozen=True, slots=True)
class ControlLink:
    """Something that is done with the link at `xid`.

    name: `promote`, `pause`, `resume`, or `repaired` once a `Repair` is recorded, so that whoever runs it begins anew.
    """

    xid: str
    name: str


@dataclass(frozen=True, slots=True)
class Follow:
    """Take in interactions of another registry's log as they are, in their order; those that are here are passed over.

    xid: of the link that they came over.
    """

    xid: str
    interactions: tuple[ForeignInteraction, ...]


@dataclass(frozen=True, slots=True)
class Repair:
    """Have entities be what they are in the registry that they came from.

    xid: of the link that they came over. position: of this registry's log, when the two were compared. entities: their
    last events there. gone: xids of what was never there. documents: bytes that events refer to, by SHA-256 in hex.
    """

    xid: str
    position: int
    entities: tuple[EntityEvent, ...]
    gone: tuple[str, ...] = ()
    documents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


LinkCommand = WriteLink | DeleteLink | ControlLink
SubscriptionCommand = WriteSubscription | DeleteSubscription | ControlSubscription
RegistryCommand = WriteTree | DeleteEntities | ReplaceModel | WriteCapabilities | Restore | CreateRegistry
Command = RegistryCommand | SubscriptionCommand | LinkCommand | Follow | Repair


def describe(command: Command) -> str:
    """A short text for the audit trail, for instance `WriteTree PUT /dirs/d1` or `Restore /dirs/d1 12`."""
    names = ("name", "method", "xid", "position")
    words = (type(command).__name__, *(getattr(command, name, None) for name in names))
    return " ".join(str(word) for word in words if word)
