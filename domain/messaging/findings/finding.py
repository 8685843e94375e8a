"""The input and output of validators: an entity, a lookup of the others, and findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.unchecked_values import as_text, protocol_options
from annals.domain.values import xid as xids
from annals.domain.values.json_pointer import join_pointer

#: A MUST of the endpoint, message and schema specifications that the model cannot express.
L2: Final = "L2"
#: Advice, and references without a target.
L3: Final = "L3"

#: Why a document is invalid in a format; None if it is valid, or if that is unknown.
SchemaCheck = Callable[[str, bytes], str | None]


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one rule about one entity.

    level: L2 or L3. rule: its id, such as EP-29. path: a JSON Pointer into the entity. text: what is wrong, as a
    sentence without its full stop. It never repeats the content of another entity, which the reader may not be allowed
    to see.
    """

    level: str
    rule: str
    xid: str
    path: str
    text: str


class EntityLookup(Protocol):
    """The other entities, as readers would see them: a Resource with an xref shows its target."""

    def get(self, xid: str) -> Mapping[str, Any] | None:
        """The attributes of a live entity, by its exact xid; a Resource's are those of its default Version."""

    def members(self, collection: str) -> Collection[str]:
        """The xids of the live entities of a collection, by tree key."""


@dataclass(frozen=True, slots=True)
class BaseChains:
    """Chains of base messages that were already followed to their end, so that none is followed twice.

    followed_xids: the Versions on them. circular_xids: those that are their own bases, directly or indirectly.
    """

    followed_xids: set[str] = field(default_factory=set)
    circular_xids: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ValidatedEntity:
    """The entity that a validator checks.

    check_schema: checks documents (MS-65). chains: shared by all entities of one validation run.
    """

    xid: str
    attributes: Mapping[str, Any]
    lookup: EntityLookup
    check_schema: SchemaCheck
    chains: BaseChains = field(default_factory=BaseChains)

    def text(self, name: str) -> str | None:
        """An attribute, if it is a string."""
        return as_text(self.attributes.get(name))

    @property
    def protocol(self) -> str | None:
        """The defined protocol that it names; None for any other (EP-10)."""
        return names.canonical_protocol(self.text("protocol"))

    @property
    def options(self) -> Mapping[str, Any]:
        """Its `protocoloptions`."""
        return protocol_options(self.attributes)

    def must(self, rule: str, text: str, *path: str | int) -> Finding:
        """A finding of L2."""
        return Finding(L2, rule, self.xid, join_pointer("", *path), text)

    def should(self, rule: str, text: str, *path: str | int) -> Finding:
        """A finding of L3."""
        return Finding(L3, rule, self.xid, join_pointer("", *path), text)

    def find(self, reference: str) -> Mapping[str, Any] | None:
        """The attributes of the entity that a text names; None if it names none or is not an xid."""
        return self.lookup.get(reference) if is_xid(reference) else None


Validator = Callable[[ValidatedEntity], Iterator[Finding]]


def is_xid(text: str) -> bool:
    """Whether a text has the form of the xid of a Group, Resource or Version."""
    parts = xids.segments(text) if text.startswith("/") else ()
    return len(parts) in (2, 4, 6) and all(map(xids.NAME.match, parts[::2])) and all(map(xids.ID.match, parts[1::2]))
