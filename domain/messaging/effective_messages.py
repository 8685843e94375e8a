"""The messages of a Group as its clients see them: resolved, and for an endpoint with those of its message groups.

Rules EP-40 to 43: own messages come first, then those of each group of this registry, in the order of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from annals.domain.messaging.resolve import (
    DefinitionLookup,
    MessageDefinition,
    ResolvedMessage,
    UnresolvedReference,
    resolve_message,
    unresolved_reason,
)
from annals.domain.values import xid as xids

MESSAGES: Final = "messages"
MESSAGEGROUPS: Final = "messagegroups"


class GroupLookup(DefinitionLookup, Protocol):
    """A lookup that also finds the messages of Groups."""

    def messages(self, group: str) -> Iterable[str] | None:
        """xids of the messages of a Group, by id; None if there is no such Group."""


@dataclass(frozen=True, slots=True)
class EffectiveMessage:
    """One effective message. xid: its place; for a Resource with an xref, that of the Resource, not of the target."""

    xid: str
    definition: MessageDefinition
    resolved: ResolvedMessage


@dataclass(frozen=True, slots=True)
class GroupReferences:
    """The Groups whose messages a Group has. groups: itself first; unresolved: references without a target here."""

    groups: Sequence[str]
    unresolved: Sequence[UnresolvedReference]


def group_references(group: str, references: object, lookup: GroupLookup) -> GroupReferences:
    """The Groups whose messages a Group has. references: its `messagegroups`; each Group counts once."""
    groups, unresolved = [group], []
    for uri in references if isinstance(references, list) else ():
        if not isinstance(uri, str):
            continue
        if uri.startswith("/") and _is_messagegroup(uri) and lookup.messages(uri) is not None:
            groups.append(uri)
        else:
            unresolved.append(UnresolvedReference(uri, unresolved_reason(uri)))
    return GroupReferences(tuple(dict.fromkeys(groups)), tuple(dict.fromkeys(unresolved)))


def effective_messages(groups: Sequence[str], lookup: GroupLookup, after: str = "") -> Iterator[EffectiveMessage]:
    """The messages of Groups, in order; a message without a definition, such as a broken xref, is left out.

    after: the xid of a message behind which they begin, which need not exist any more; its Group is one of the Groups.
    """
    first = groups.index(xids.join(*xids.segments(after)[:2])) if after else 0
    for group in groups[first:]:
        for xid in lookup.messages(group) or ():
            if after and group == groups[first] and xids.tree_key(xid) <= xids.tree_key(after):
                continue
            definition = lookup.definition(xid)
            if definition is not None:
                yield EffectiveMessage(xid, definition, resolve_message(definition, lookup))


def _is_messagegroup(uri: str) -> bool:
    """Whether an xid is that of a message group."""
    segments = xids.segments(uri)
    return len(segments) == 2 and segments[0] == MESSAGEGROUPS
