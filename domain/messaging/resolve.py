"""Resolves messages: merges a stored message with its chain of base messages.

The chain begins at the message and follows `basemessageuri` through this registry. The nearer value has precedence.
Objects and maps are merged member by member, any other value is used as a whole. Defaults have the lowest precedence,
however near they are (MS-16).
Spec: message 1.0-rc4, "basemessage". Rules MS-14 to 19.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Any, Final, Protocol

from annals.domain.registry.entities import Attributes
from annals.domain.registry.explicit_values import explicit_values

BASE: Final = "basemessageuri"
#: The attributes that a message inherits (MS-15): all that the message registry itself defines, except the reference.
INHERITED: Final = (
    *("envelope", "envelopemetadata", "envelopeoptions", "protocol", "protocoloptions"),
    *("dataschemaformat", "dataschema", "dataschemauri", "dataschemaxid", "datacontenttype"),
)
#: An inline schema is a document: a mixture of two would be invalid.
_REPLACED_NAMES: Final = frozenset({"dataschema"})
#: The maximum number of bases. Chains written by people have two or three.
MAX_BASES: Final = 256


class UnresolvedReason(StrEnum):
    """Why a chain could not be followed to its end: see `UnresolvedReference`."""

    EXTERNAL = "external"  # it leaves this registry, and nothing is fetched
    DANGLING = "dangling"  # there is no such entity here, or the caller may not see it
    CYCLE = "cycle"  # it returns to a message of the chain
    LONG = "long"  # it is longer than MAX_BASES


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """A reference that could not be followed, as it is stored."""

    uri: str
    reason: UnresolvedReason


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """A message as it is stored: one Version of it.

    xid: of the Version. marks: its defaults, see `annals.domain.registry.explicit_values`.
    """

    xid: str
    attributes: Attributes
    marks: Mapping[str, Any] = field(default_factory=dict)


class DefinitionLookup(Protocol):
    """Finds definitions."""

    def definition(self, xid: str) -> MessageDefinition | None:
        """The Version of an xid, or the default Version of a message's xid (MS-17); None if there is neither."""


@dataclass(frozen=True, slots=True)
class ResolvedMessage:
    """A message with its inherited attributes.

    attributes: the message's own, merged with the inherited ones. bases: xids of the Versions that they come from,
    nearest first. unresolved: the reference at which the chain broke; the bases before it are included.
    """

    attributes: Attributes
    bases: tuple[str, ...] = ()
    unresolved: UnresolvedReference | None = None


def resolve_message(definition: MessageDefinition, lookup: DefinitionLookup) -> ResolvedMessage:
    """A message with all attributes from its bases. Never fails: a broken chain is reported in the result (MS-18)."""
    chain, unresolved = _follow_bases(definition, lookup)
    return ResolvedMessage(
        {**definition.attributes, **_merge_chain(chain)},
        tuple(base_definition.xid for base_definition in chain[1:]),
        unresolved,
    )


def unresolved_reason(uri: str) -> UnresolvedReason:
    """Why a reference has no target."""
    return UnresolvedReason.DANGLING if uri.startswith("/") else UnresolvedReason.EXTERNAL


def _follow_bases(
    definition: MessageDefinition, lookup: DefinitionLookup
) -> tuple[list[MessageDefinition], UnresolvedReference | None]:
    chain = [definition]
    chain_xids = {definition.xid.lower()}
    while (uri := chain[-1].attributes.get(BASE)) is not None:
        base_definition = lookup.definition(uri) if uri.startswith("/") else None
        if base_definition is None:
            return chain, UnresolvedReference(uri, unresolved_reason(uri))
        if base_definition.xid.lower() in chain_xids:
            return chain, UnresolvedReference(uri, UnresolvedReason.CYCLE)
        if len(chain) > MAX_BASES:
            return chain, UnresolvedReference(uri, UnresolvedReason.LONG)
        chain_xids.add(base_definition.xid.lower())
        chain.append(base_definition)
    return chain, None


def _merge_chain(chain: Iterable[MessageDefinition]) -> Attributes:
    """All inherited attributes: defaults at the bottom, above them the explicit values, the nearest on top."""
    base_first = list(chain)[::-1]
    all_layers = [_inherited_attributes(definition.attributes) for definition in base_first]
    explicit_layers = [
        _inherited_attributes(explicit_values(definition.attributes, definition.marks)) for definition in base_first
    ]
    return reduce(lambda below, above: _merge(below, above, _REPLACED_NAMES), [*all_layers, *explicit_layers], {})


def _inherited_attributes(attributes: Attributes) -> Attributes:
    return {name: attributes[name] for name in INHERITED if name in attributes}


def _merge(lower: Attributes, upper: Attributes, replaced_names: frozenset[str] = frozenset()) -> Attributes:
    merged = dict(lower)
    for name, value in upper.items():
        lower_value = lower.get(name)
        if isinstance(value, dict) and isinstance(lower_value, dict) and name not in replaced_names:
            merged[name] = _merge(lower_value, value)
        else:
            merged[name] = value
    return merged
