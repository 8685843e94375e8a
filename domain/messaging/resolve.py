"""Messages as their base messages make them: what is stored merged along the chain of bases.

The chain begins at the message and follows `basemessageuri` through this registry. What is nearer wins; objects and
maps are merged member by member, anything else is taken whole. Defaults count least, however near they are (MS-16).
Spec: message 1.0-rc4, "basemessage". Rules MS-14 to 19.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Any, Final, Protocol

from domain.registry.entities import Attributes
from domain.registry.explicit_values import explicit_values

BASE: Final = "basemessageuri"
#: What a message takes from its base (MS-15): all that the message registry itself defines, but not the pointer.
INHERITED: Final = (
    *("envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
    *("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid", "datacontenttype"),
)
#: An inline schema is a document: half of one and half of another would be none.
_WHOLE: Final = frozenset({"dataschema"})
#: Bases that are followed. Chains of people have two or three.
MAX_BASES: Final = 256


class UnresolvedReason(StrEnum):
    """Why a chain ends before its end: see `UnresolvedReference`."""

    EXTERNAL = "external"  # it leaves this registry, and nothing is fetched
    DANGLING = "dangling"  # there is no such entity here, or the caller may not see it
    CYCLE = "cycle"  # it comes back to where it has been
    LONG = "long"  # it goes on beyond MAX_BASES


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference that could not be followed, as it is stored."""

    uri: str
    reason: UnresolvedReason


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """A message as it is stored: one Version of it.

    xid: of the Version. marks: its defaults, see `domain.registry.explicit_values`.
    """

    xid: str
    attributes: Attributes
    marks: Mapping[str, Any] = field(default_factory=dict)


class DefinitionLookup(Protocol):
    """Where definitions are found."""

    def definition(self, xid: str) -> MessageDefinition | None:
        """The Version that an xid names, or the default one of the message that it names (MS-17); None for neither."""


@dataclass(frozen=True, slots=True)
class ResolvedMessage:
    """What a message comes to.

    attributes: the message's own, those that it inherits merged in. bases: xids of the Versions that it was made of,
    nearest first. unresolved: where the chain could not go on; what is before it is there.
    """

    attributes: Attributes
    bases: tuple[str, ...] = ()
    unresolved: UnresolvedReference | None = None


def resolve_message(definition: MessageDefinition, lookup: DefinitionLookup) -> ResolvedMessage:
    """A message with all that its bases give it. Never fails: an end that cannot be followed is marked (MS-18)."""
    chain, unresolved = _chain(definition, lookup)
    return ResolvedMessage(
        {**definition.attributes, **_merged(chain)}, tuple(base.xid for base in chain[1:]), unresolved
    )


def unresolved_reason(uri: str) -> UnresolvedReason:
    """Why a reference that was not found was not."""
    return UnresolvedReason.DANGLING if uri.startswith("/") else UnresolvedReason.EXTERNAL


def _chain(
    definition: MessageDefinition, lookup: DefinitionLookup
) -> tuple[list[MessageDefinition], UnresolvedReference | None]:
    chain = [definition]
    known = {definition.xid.lower()}
    while (uri := chain[-1].attributes.get(BASE)) is not None:
        found = lookup.definition(uri) if uri.startswith("/") else None
        if found is None:
            return chain, UnresolvedReference(uri, unresolved_reason(uri))
        if found.xid.lower() in known:
            return chain, UnresolvedReference(uri, UnresolvedReason.CYCLE)
        if len(chain) > MAX_BASES:
            return chain, UnresolvedReference(uri, UnresolvedReason.LONG)
        known.add(found.xid.lower())
        chain.append(found)
    return chain, None


def _merged(chain: Iterable[MessageDefinition]) -> Attributes:
    """Everything that is inherited: defaults at the bottom, above them what was stated, the nearest on top."""
    upwards = list(chain)[::-1]
    everything = [_inherited(each.attributes) for each in upwards]
    said = [_inherited(explicit_values(each.attributes, each.marks)) for each in upwards]
    return reduce(lambda below, above: _over(below, above, _WHOLE), [*everything, *said], {})


def _inherited(attributes: Attributes) -> Attributes:
    return {name: attributes[name] for name in INHERITED if name in attributes}


def _over(below: Attributes, above: Attributes, whole: frozenset[str] = frozenset()) -> Attributes:
    done = dict(below)
    for name, value in above.items():
        under = below.get(name)
        if isinstance(value, dict) and isinstance(under, dict) and name not in whole:
            done[name] = _over(under, value)
        else:
            done[name] = value
    return done
