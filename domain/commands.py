"""What callers ask for. A command that decides into events is an interaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.jsontext import Json

#: The `ignore` values that a command may carry (FLAG table of core 1.0-rc4, "Ignore Flag").
IGNORES = ("capabilities", "defaultversionid", "defaultversionsticky", "epoch", "id", "modelsource", "readonly")


class Method(StrEnum):
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
    """

    xid: str
    tree: Mapping[str, Json]
    method: Method
    document: bytes | None = None
    mediatype: str = "application/json"
    ignore: frozenset[str] = frozenset()
    setdefaultversionid: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteEntities:
    """Delete the entity at `xid`, or members of the collection at `xid`.

    targets: the body of a collection's DELETE: None deletes all members, a map those that it names (`{}` none).
    epoch: the flag's raw value on a single entity; None when absent.
    """

    xid: str
    targets: Mapping[str, Json] | None = None
    epoch: str | None = None
    ignore: frozenset[str] = frozenset()
    setdefaultversionid: str | None = None


@dataclass(frozen=True, slots=True)
class ReplaceModel:
    """Replace the model; `source` is a modelsource document (`PUT /modelsource`)."""

    source: Json


@dataclass(frozen=True, slots=True)
class WriteCapabilities:
    """Replace the capabilities (PUT) or the given ones among them (PATCH)."""

    capabilities: Json
    method: Method


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


Command = WriteTree | DeleteEntities | ReplaceModel | WriteCapabilities | Restore | CreateRegistry


def describe(command: Command) -> str:
    """A short text for the audit trail, for instance `WriteTree PUT /dirs/d1` or `Restore /dirs/d1 12`."""
    words = (type(command).__name__, *(getattr(command, name, None) for name in ("method", "xid", "position")))
    return " ".join(str(word) for word in words if word)
