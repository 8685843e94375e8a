"""Decides commands about grants (ACC-62 to ACC-64)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from annals.domain.access.grants import COLLECTION, TYPE, Grant
from annals.domain.access.places import MAX_PLACES
from annals.domain.decisions.access.administration import check_administers, existing_entity, places_of_grant
from annals.domain.decisions.commands import DeleteGrant, WriteGrant
from annals.domain.decisions.world import Context, Decision, World, changed_members, event_members
from annals.domain.errors.http_errors import InvalidGrant
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityUpdated

_EXPIRES: Final = "expires"


def decide_grant(command: WriteGrant | DeleteGrant, world: World, context: Context) -> Decision:
    """The event of a command, if it changes anything. Raises: Forbidden, NotFound, InvalidGrant."""
    match command:
        case WriteGrant(is_new=True):
            return _create(command, world, context)
        case WriteGrant():
            return _replace(command, world, context)
        case DeleteGrant():
            return _delete(command, world, context)


def _create(command: WriteGrant, world: World, context: Context) -> Decision:
    check_administers(context, places_of_grant(command.attributes))
    _check_expiry(command, context)
    if (existing := world.get(command.xid)) is not None:
        raise InvalidGrant.at_pointer("exists", "/id", f"the grant {existing.id} exists already")
    _check_number(command, world)
    event = EntityCreated(
        attributes=dict(command.attributes),
        private={"grantedby": context.caller},
        **event_members(command.xid, TYPE, 1, world, context),
    )
    return Decision((event,), {}, (event.xid,))


def _replace(command: WriteGrant, world: World, context: Context) -> Decision:
    entity = existing_entity(command.xid, world, context)
    check_administers(context, (*places_of_grant(entity.attributes), *places_of_grant(command.attributes)))
    changed = changed_members(entity.attributes, command.attributes, ())
    if not changed:
        return Decision((), {}, (command.xid,))
    _check_expiry(command, context)
    if "subject" in changed:
        _check_number(command, world)
    event = EntityUpdated(
        attributes=dict(command.attributes),
        private={"grantedby": context.caller},
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


def _check_number(command: WriteGrant, world: World) -> None:
    """Raises: InvalidGrant if the subject would have more places than a caller may have (ACC-60)."""
    grants = map(Grant.from_entity, world.entities_outside_tree(COLLECTION))
    if sum(grant.subject == command.attributes["subject"] for grant in grants) >= MAX_PLACES:
        raise InvalidGrant.at_pointer("many", "/subject", f"it has {MAX_PLACES} grants already")
