"""Callers and their roles.

A role applies to the whole registry or to places in it: Groups and patterns of Groups. Where it applies, a `reader`
sees everything, a `writer` changes everything, including model and capabilities, and an `admin` may also do what
writers may not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from annals.domain.access.places import is_pattern, matches
from annals.domain.values import xid as xids


class Role(StrEnum):
    """The role of a caller for the registry, or for one of its Groups."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"


#: The beginning of the names of callers with an API key.
KEY_PREFIX: Final = "key:"
#: The order of roles, by how much they allow.
RANK: Final = {None: 0, Role.READER: 1, Role.WRITER: 2, Role.ADMIN: 3}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. role: for the whole registry.

    groups: additional roles by `places`, in lower case.

    link: id of the replication link that acts; empty for all other callers. authenticator, keyid: what proved who it
    is, and the id of the API key if it was one; empty for a caller without a credential. began_by: of a session, the
    authenticator of the credential that began it; else empty. entry: of its credential in the list of the
    authenticator, hashed; empty without one. These four give no rights. claims: words of the credential that grants can
    name. without_grants: the caller with the roles of its credential alone; None if no grant adds to them.
    """

    name: str
    role: Role | None = None
    groups: Mapping[str, Role] = field(default_factory=dict)
    link: str = ""
    authenticator: str = ""
    keyid: str = ""
    began_by: str = ""
    entry: str = ""
    claims: tuple[str, ...] = ()
    without_grants: Caller | None = None

    def role_at(self, xid: str) -> Role | None:
        """The role at an entity or collection: the highest of the general role and those of its Group."""
        if not self.groups:
            return self.role
        group = group_of(xid)
        own_roles = (role for place, role in self.groups.items() if is_pattern(place) and matches(place, group))
        return highest_role(self.role, self.groups.get(group), *own_roles)

    def can_read(self, xid: str) -> bool:
        """Whether the caller may see the entity at an xid, and what has happened to it."""
        return self.role is not None or self.role_at(xid) is not None

    @property
    def places(self) -> tuple[str, ...] | None:
        """The places that the caller sees, in order; None for the whole registry. See `annals.domain.access.places`."""
        return None if self.role is not None else tuple(sorted(self.groups))

    @property
    def rights(self) -> Hashable:
        """All that decides what the caller may do: callers with equal rights may do the same."""
        return self.role, tuple(sorted(self.groups.items())), self.link

    @property
    def sees_everything(self) -> bool:
        """Whether the caller may read the whole registry."""
        return self.role is not None

    @property
    def sees_something(self) -> bool:
        """Whether the caller has a role anywhere; without one it reads nothing."""
        return self.sees_everything or bool(self.groups)

    @property
    def is_admin(self) -> bool:
        """Whether the caller administers the registry: subscriptions of others, links, settings."""
        return self.role is Role.ADMIN

    def can_write(self, xid: str) -> bool:
        """Whether the caller may change the entity at an xid, or make it."""
        return RANK[self.role_at(xid)] >= RANK[Role.WRITER]

    @property
    def writes_somewhere(self) -> bool:
        """Whether there is an entity that the caller may change or make."""
        return any(RANK[role] >= RANK[Role.WRITER] for role in (self.role, *self.groups.values()))

    def administers(self, place: str) -> bool:
        """Whether the caller is an admin of a place and of everything within it. place: see `places`, or `/`."""
        if self.is_admin or place == xids.REGISTRY:
            return self.is_admin
        # Wildcards of the place count as characters: what matches them matches everything that they can stand for.
        return any(role is Role.ADMIN and matches(own, place) for own, role in self.groups.items())

    @property
    def administers_something(self) -> bool:
        """Whether the caller is an admin anywhere."""
        return self.is_admin or Role.ADMIN in self.groups.values()

    @property
    def has_key(self) -> bool:
        """Whether the caller called with an API key."""
        return self.name.startswith(KEY_PREFIX)

    @property
    def subscription_role(self) -> Role | None:
        """The role at subscriptions, which belong to no Group: the right to write to any Group is sufficient."""
        is_writer = any(RANK[role] >= RANK[Role.WRITER] for role in self.groups.values())
        return highest_role(self.role, Role.WRITER if is_writer else None)


#: Every caller of a server without authentication.
ANONYMOUS: Final = Caller("anonymous", Role.WRITER)
#: Every caller without a credential, where these may read only.
ANONYMOUS_READER: Final = Caller(ANONYMOUS.name, Role.READER)
#: Every caller without a credential, where each request needs one.
NO_CALLER: Final = Caller(ANONYMOUS.name)
#: A caller with direct access to the store.
CONSOLE: Final = Caller("console", Role.ADMIN)


#: Whether a caller may read the entity at an xid; see `Caller.can_read`.
CanRead = Callable[[str], bool]


def can_read_everything(xid: str) -> bool:
    """The permission of a caller that may read the whole registry."""
    return True


def highest_role(*roles: Role | None) -> Role | None:
    """The role that allows most."""
    return max(roles, key=RANK.__getitem__, default=None)


def group_of(xid: str) -> str:
    """The lower-cased xid of the Group that contains or is an entity; empty for what is in no Group."""
    segments = xids.segments(xid)
    is_in_group = len(segments) > 1 and all(segments[:2]) and not xids.is_outside_tree(xid)
    return xids.stream(xids.join(*segments[:2])) if is_in_group else ""
