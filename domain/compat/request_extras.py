"""What an older API says beyond the tree of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.compat.legacy_apis import LegacyApi
from domain.values.json_text import Json


@dataclass(frozen=True, slots=True)
class LegacyWrite:
    """Beside a WriteTree: what the registry's own attributes do not hold, as the client spells it; None: not given.

    base: absolute canonical URL of the façade. authority: URI of who controls the definition. id: URI-reference of the
    Version. format: of the Group or the definition; of a message definition, what its document was read as.
    description: of the definition; the Version's is in the tree. content, contenttype: bytes and media type of a
    message definition's document, which the registry has no place for. left: of it, what the attributes cannot hold.
    """

    family: LegacyApi
    base: str
    authority: str | None = None
    id: str | None = None
    format: str | None = None
    description: str | None = None
    content: bytes | None = None
    contenttype: str | None = None
    left: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LegacyDeletion:
    """Beside a DeleteEntities. number: of the Version that goes, where the command names `.../versions`; else None."""

    family: LegacyApi
    number: int | None = None
