"""Who has which role at a place, and by what (ACC-66)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from annals.domain.access import grants, keys
from annals.domain.access.grants import CALLER_SUBJECT, Grant
from annals.domain.access.keys import ApiKey
from annals.domain.access.places import matches
from annals.domain.access.roles import Caller, Role
from annals.domain.values import xid as xids


class HeldRole(NamedTuple):
    """subject: as in grants. by: the xid of a grant or a key, or the name of a setting."""

    subject: str
    role: Role
    by: str


def roles_by_grant(place: str, given: Iterable[Grant], now: datetime) -> Iterator[HeldRole]:
    """The roles that grants give at a place, which is a Group or the registry."""
    for grant in given:
        if grant.holds_at(now) and (grant.at == xids.REGISTRY or matches(grant.at, place)):
            yield HeldRole(grant.subject, grant.role, f"{grants.COLLECTION}/{grant.id}")


def roles_by_key(place: str, found: Iterable[ApiKey], now: datetime) -> Iterator[HeldRole]:
    """The roles that the callers with API keys have at a place."""
    for key in found:
        if now < key.expires:
            yield from roles_by_setting(place, [(key.caller, f"{keys.COLLECTION}/{key.id}")])


def roles_by_setting(place: str, listed: Iterable[tuple[Caller, str]]) -> Iterator[HeldRole]:
    """The roles that listed callers have at a place. listed: callers, each with where it is listed."""
    for caller, origin in listed:
        if (role := caller.role_at(place)) is not None:
            yield HeldRole(f"{CALLER_SUBJECT}{caller.name}", role, origin)
