"""Callers and their roles.

A role holds for the whole registry or for single Groups. Within what it holds for, a `reader` sees everything, a
`writer` changes everything, model and capabilities included, and an `admin` also does what is kept from writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from domain.values import xid as xids


class Role(StrEnum):
    """What a caller is to the registry, or to one of its Groups."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"


#: How much roles allow, in order.
RANK: Final = {None: 0, Role.READER: 1, Role.WRITER: 2, Role.ADMIN: 3}


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

    @property
    def subscribes(self) -> Role | None:
        """The role at subscriptions, which are no part of any Group: whoever may write somewhere may have some."""
        writes = any(RANK[role] >= RANK[Role.WRITER] for role in self.groups.values())
        return highest_role(self.role, Role.WRITER if writes else None)


#: Whoever asks where no callers are told apart.
ANONYMOUS: Final = Caller("anonymous", Role.WRITER)
#: Whoever has the store itself at hand.
CONSOLE: Final = Caller("console", Role.ADMIN)


def highest_role(*roles: Role | None) -> Role | None:
    """The one that allows most."""
    return max(roles, key=RANK.__getitem__, default=None)


def group_of(xid: str) -> str:
    """The lower-cased xid of the Group that something is in or is; empty for what is above the Groups."""
    segments = xids.segments(xid)
    return xids.stream(xids.join(*segments[:2])) if len(segments) > 1 else ""
