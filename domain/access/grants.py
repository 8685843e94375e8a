"""Grants: roles that administrators give to callers, claims or everybody with a credential (ACC-61 to ACC-63).

The stream of a grant is `/-/grants/<id>`, outside the registry's tree. Grants only add to the roles that a credential
has, so they can lock nobody out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from annals.domain.access.roles import Caller, Role, highest_role
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids

#: A name that no type of the model can have.
TYPE: Final = "-.grants"
COLLECTION: Final = "/-/grants"

#: The subject of a grant to every caller with a credential.
ANYONE: Final = "anyone"
CALLER_SUBJECT: Final = "caller:"
CLAIM_SUBJECT: Final = "claim:"


@dataclass(frozen=True, slots=True)
class Grant:
    """A live grant in the log.

    subject: `caller:<name>`, `claim:<word>`, or `anyone`. at: a place, or `/` for the registry. expires: None for
    never. attributes: the public form.
    """

    id: str
    subject: str
    role: Role
    at: str
    expires: datetime | None
    attributes: Mapping[str, Any]

    def holds_at(self, moment: datetime) -> bool:
        """Whether it has not expired at a moment."""
        return self.expires is None or moment < self.expires

    @classmethod
    def from_entity(cls, entity: Entity) -> Grant:
        """The grant of a live entity in the log."""
        attributes = entity.attributes
        expires = attributes.get("expires")
        return cls(
            id=entity.id,
            subject=attributes["subject"],
            role=Role(attributes["role"]),
            at=attributes["at"],
            expires=datetime.fromisoformat(expires) if expires is not None else None,
            attributes=attributes,
        )


def subjects_of(caller: str, claims: Iterable[str]) -> Iterator[str]:
    """The subjects of the grants that hold for a caller with a credential. claims: the words that it has."""
    yield ANYONE
    yield CALLER_SUBJECT + caller
    yield from (CLAIM_SUBJECT + word for word in claims)


def with_grants(caller: Caller, grants: Iterable[Grant]) -> Caller:
    """The caller with the roles of some grants as well; the highest role at a place holds."""
    role, groups = caller.role, dict(caller.groups)
    for grant in grants:
        if grant.at == xids.REGISTRY:
            role = highest_role(role, grant.role)
        else:
            groups[grant.at] = highest_role(groups.get(grant.at), grant.role) or grant.role
    if (role, groups) == (caller.role, caller.groups):
        return caller
    return replace(caller, role=role, groups=groups, without_grants=caller)
