"""Decides commands about grants (ACC-62 to ACC-64)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from annals.domain.access.grants import COLLECTION, TYPE, Grant
from annals.domain.access.places import MAX_PLACES
from annals.domain.decisions.access.administration import check_administers, existing_entity, places_of_grant
from annals.domain.decisions.commands import DeleteGrant, WriteGrant
from annals.domain.decisions.world import Context, Decision, World, changed_members, event_members
from annals.domain.errors.http_errors import InvalidGrant
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityUpdated

_EXPIRES: Final = "expires"
#: The attributes that say what a grant gives, and to whom.
_GIVING: Final = frozenset(("subject", "role", "at"))


def decide_grant(command: WriteGrant | DeleteGrant, world: World, context: Context) -> Decision:
    """The event of a command, if it changes anything. Raises: Forbidden, NotFound, InvalidGrant."""
    match command:
        case WriteGrant():
            existing = world.get(command.xid)
            if existing is None or command.must_be_new or existing.xid != command.xid:
                return _create(command, existing, world, context)
            return _replace(command, existing, world, context)
        case DeleteGrant():
            return _delete(command, world, context)


def _create(command: WriteGrant, existing: Entity | None, world: World, context: Context) -> Decision:
    check_administers(context, places_of_grant(command.attributes))
    _check_expiry(command, context)
    if existing is not None:
        check_administers(context, places_of_grant(existing.attributes))  # others do not learn what it gives
        raise InvalidGrant.at_pointer("exists", "/id", f"the grant {existing.id} exists already")
    _check_number(command, world, context)
    event = EntityCreated(
        attributes=dict(command.attributes),
        private={"grantedby": context.caller.name},
        **event_members(command.xid, TYPE, 1, world, context),
    )
    return Decision((event,), {}, (event.xid,))


def _replace(command: WriteGrant, entity: Entity, world: World, context: Context) -> Decision:
    check_administers(context, (*places_of_grant(entity.attributes), *places_of_grant(command.attributes)))
    changed = changed_members(entity.attributes, command.attributes, ())
    if not changed:
        return Decision((), {}, (command.xid,))
    _check_expiry(command, context)
    if not _GIVING.isdisjoint(changed):
        _check_number(command, world, context)
    event = EntityUpdated(
        attributes=dict(command.attributes),
        private={"grantedby": context.caller.name},
        changed=changed,
        born=entity.born,
        **event_members(entity.xid, TYPE, entity.epoch + 1, world, context),
    )
    return Decision((event,), {}, (event.xid,))


def _delete(command: DeleteGrant, world: World, context: Context) -> Decision:
    entity = existing_entity(command.xid, world, context)
    check_administers(context, places_of_grant(entity.attributes))
    event = EntityDeleted(attributes={}, private={}, **event_members(entity.xid, TYPE, entity.epoch, world, context))
    return Decision((event,), {}, (event.xid,))


def _check_expiry(command: WriteGrant, context: Context) -> None:
    given = command.attributes.get(_EXPIRES)
    if given is not None and datetime.fromisoformat(str(given)) <= context.now:
        raise InvalidGrant.at_pointer("value", f"/{_EXPIRES}", "it is in the past")


def _check_number(command: WriteGrant, world: World, context: Context) -> None:
    """Raises: InvalidGrant for a role that the subject has there by another grant, and for more grants to the subject
    than a caller may have places (ACC-60). Those of other administrators do not count, so nobody can use them up.
    """
    subject, wanted = command.attributes["subject"], _role_and_place(command.attributes)
    others = [
        entity
        for entity in world.entities_outside_tree(COLLECTION)
        if entity.attributes["subject"] == subject and entity.xid != command.xid
    ]
    lasting = (entity for entity in others if Grant.from_entity(entity).holds_at(context.now))
    same = next((entity for entity in lasting if _role_and_place(entity.attributes) == wanted), None)
    if same is not None:
        raise InvalidGrant.at_pointer("exists", "/at", f"the grant {same.id} gives this role there; change that one")
    if sum(entity.private["grantedby"] == context.caller.name for entity in others) >= MAX_PLACES:
        raise InvalidGrant.at_pointer("many", "/subject", f"you have given it {MAX_PLACES} grants already")


def _role_and_place(attributes: Mapping[str, Any]) -> tuple[str, str]:
    return attributes["role"], attributes["at"]
