"""Who may do what: callers with roles, and what a command needs of them.

A role holds for the whole registry or for single Groups. Within what it holds for, a `reader` sees everything, a
`writer` changes everything, model and capabilities included, and an `admin` also does what is kept from writers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from domain.registry.commands import (
    Command,
    ControlSubscription,
    DeleteEntities,
    DeleteSubscription,
    Restore,
    WriteMethod,
    WriteSubscription,
    WriteTree,
)
from domain.values import xid as xids


class Role(StrEnum):
    """What a caller is to the registry, or to one of its Groups."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"


_RANK: Final = {None: 0, Role.READER: 1, Role.WRITER: 2, Role.ADMIN: 3}


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks. role: for the whole registry. groups: further roles by the lower-cased xid of a Group.

    link: id of the replication link whose doing it is; empty for everybody else.
    """

    name: str
    role: Role | None = None
    groups: Mapping[str, Role] = field(default_factory=dict)
    link: str = ""

    def role_at(self, xid: str) -> Role | None:
        """The role at an entity or collection: that of its Group where this is the higher one."""
        return highest_role(self.role, self.groups.get(group_of(xid)))

    def reads(self, xid: str) -> bool:
        """Whether the caller may see what is at an xid."""
        return self.role_at(xid) is not None

    def role_for(self, command: Command) -> Role | None:
        """The least of the roles at what a command names."""
        if not self.groups:
            return self.role
        if isinstance(command, WriteSubscription | DeleteSubscription | ControlSubscription):
            return self.subscribes
        return min((self.role_at(xid) for xid in _named_groups(command)), key=_RANK.__getitem__)

    @property
    def subscribes(self) -> Role | None:
        """The role at subscriptions, which are no part of any Group: whoever may write somewhere may have some."""
        writes = any(_RANK[role] >= _RANK[Role.WRITER] for role in self.groups.values())
        return highest_role(self.role, Role.WRITER if writes else None)

    def may_ask(self, command: Command) -> bool:
        """Whether the caller may have a command carried out, and may see what it refers to."""
        return _RANK[self.role_for(command)] >= _RANK[Role.WRITER] and (
            self.role is not None or all(map(self.reads, _xref_targets(command)))
        )


#: Whoever asks where no callers are told apart.
ANONYMOUS: Final = Caller("anonymous", Role.WRITER)
#: Whoever has the store itself at hand.
CONSOLE: Final = Caller("console", Role.ADMIN)


def highest_role(*roles: Role | None) -> Role | None:
    """The one that allows most."""
    return max(roles, key=_RANK.__getitem__, default=None)


def group_of(xid: str) -> str:
    """The lower-cased xid of the Group that something is in or is; empty for what is above the Groups."""
    segments = xids.segments(xid)
    return xids.stream(xids.join(*segments[:2])) if len(segments) > 1 else ""


def _named_groups(command: Command) -> Iterator[str]:
    """What a command is about: Groups, or the registry where it is not confined to Groups that it names."""
    match command:
        case WriteTree(xid=xids.REGISTRY, method=WriteMethod.POST, tree=tree) if tree:
            yield from (f"/{plural}/{id}" for plural, members in tree.items() for id in _keys(members))
        case WriteTree(xid=xid, tree=tree) if _is_collection_of_groups(xid) and tree:
            yield from (f"{xid}/{id}" for id in tree)
        case DeleteEntities(xid=xid, targets=targets) if _is_collection_of_groups(xid) and targets:
            yield from (f"{xid}/{id}" for id in targets)
        case WriteTree(xid=xid) | DeleteEntities(xid=xid) | Restore(xid=xid):
            yield xid
        case _:
            yield xids.REGISTRY


def _keys(members: Any) -> Iterator[str]:
    yield from members if isinstance(members, dict) and members else ("",)


def _is_collection_of_groups(xid: str) -> bool:
    return len(xids.segments(xid)) == 1


def _xref_targets(command: Command) -> Iterator[str]:
    """The Resources that cross references in a body point to: what is written shows them."""
    if isinstance(command, WriteTree):
        yield from _references(command.tree)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(found := value.get("xref"), str):
            yield found
        for inner in value.values():
            yield from _references(inner)
