"""Who may make and change keys and grants: an admin of the places that they are about (ACC-49, ACC-64)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from annals.domain.access.roles import KEY_PREFIX
from annals.domain.decisions.world import Context, World
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotFound
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids


def places_of_key(attributes: Mapping[str, Any]) -> list[str]:
    """The places where a key with some attributes has a role."""
    return [*([xids.REGISTRY] if attributes.get("role") is not None else []), *attributes.get("groups", {})]


def places_of_grant(attributes: Mapping[str, Any]) -> list[str]:
    """The place where a grant with some attributes gives a role."""
    return [attributes["at"]]


def check_administers(context: Context, places: Iterable[str]) -> None:
    """Raises: Forbidden for a caller who is no admin of one of the places, or who called with a key."""
    if context.caller.name.startswith(KEY_PREFIX) or not all(map(context.caller.administers, places)):
        raise Forbidden(caller=context.caller.name)


def existing_entity(xid: str, world: World, context: Context) -> Entity:
    """The live key or grant at exactly this xid.

    Raises: NotFound; Forbidden for a caller who must not learn which ones exist (ACC-78).
    """
    entity = world.get(xid)
    if entity is None or entity.xid != xid:
        check_administers(context, (xids.REGISTRY,))
        raise NotFound(xid)
    return entity
