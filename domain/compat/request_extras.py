"""Data of a legacy request that does not fit into the command's tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.values.json_text import Json


@dataclass(frozen=True, slots=True)
class LegacyWrite:
    """Accompanies a WriteTree with data that the registry's attributes do not hold, as the client wrote it.

    None: not given. base: absolute canonical URL of the façade. authority: URI of the owner of the definition. id: URI
    reference of the Version. format: of the Group or the definition; for a message definition, the format that its
    document was read as. description: of the definition; the description of the Version is in the tree. content,
    contenttype: bytes and media type of a message definition's document, which the registry does not store as a
    document. leftovers: the part of that document that the attributes cannot hold.
    """

    family: LegacyApi
    base: str
    authority: str | None = None
    id: str | None = None
    format: str | None = None
    description: str | None = None
    content: bytes | None = None
    contenttype: str | None = None
    leftovers: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LegacyDeletion:
    """Accompanies a DeleteEntities. number: the Version to delete where the command names `.../versions`; else None."""

    family: LegacyApi
    number: int | None = None
