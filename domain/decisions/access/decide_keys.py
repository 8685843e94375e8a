"""Decides commands about API keys (ACC-41 to ACC-46)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from annals.domain.access.grants import CALLER_SUBJECT, Grant
from annals.domain.access.grants import COLLECTION as GRANTS
from annals.domain.access.keys import COLLECTION, TYPE, ApiKey, time_text
from annals.domain.access.roles import KEY_PREFIX
from annals.domain.decisions.access.administration import check_administers, existing_entity, places_of_key
from annals.domain.decisions.commands import CreateKey, RevokeKey, RotateKey
from annals.domain.decisions.subscriptions import COLLECTION as SUBSCRIPTIONS
from annals.domain.decisions.world import Context, Decision, World, event_members
from annals.domain.errors.http_errors import Forbidden, InvalidKey
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.values import xid as xids

DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 366


def decide_key(command: CreateKey | RotateKey | RevokeKey, world: World, context: Context) -> Decision:
    """The event of a command. Raises: Forbidden, NotFound, InvalidKey."""
    match command:
        case CreateKey():
            event: EntityEvent = _create(command, world, context)
        case RotateKey():
            event = _rotate(command, world, context)
        case RevokeKey():
            event = _revoke(command, world, context)
    return Decision((event,), {}, (event.xid,))


def _create(command: CreateKey, world: World, context: Context) -> EntityCreated:
    check_administers(context, places_of_key(command.attributes))
    expires = _expiry(command.attributes.get("expires"), context.now)
    name = command.attributes["name"]
    if any(key.name == name and context.now < key.expires for key in _live_keys(world)):
        raise InvalidKey.at_pointer("exists", "/name", f'a key with the name "{name}" exists already')
    _check_administers_name(name, world, context)
    if not context.caller.administers(xids.REGISTRY) and _owns_subscriptions(name, world):
        raise _forbidden_name(name, context)
    attributes = {**command.attributes, "expires": time_text(expires), "createdat": time_text(context.now)}
    return EntityCreated(
        attributes=attributes,
        private={"hash": command.hash, "createdby": context.caller.name},
        **event_members(command.xid, TYPE, 1, world, context),
    )


def _live_keys(world: World) -> list[ApiKey]:
    return [ApiKey.from_entity(entity) for entity in world.entities_outside_tree(COLLECTION)]


def _check_administers_name(name: str, world: World, context: Context) -> None:
    """Checks that the caller administers what grants add to a key's own places (ACC-64): who has the key has it, too.

    Raises: Forbidden.
    """
    subject = CALLER_SUBJECT + KEY_PREFIX + name
    grants = map(Grant.from_entity, world.entities_outside_tree(GRANTS))
    places = [grant.at for grant in grants if grant.subject == subject and grant.holds_at(context.now)]
    if not all(map(context.caller.administers, places)):
        raise _forbidden_name(name, context)


def _owns_subscriptions(name: str, world: World) -> bool:
    """Whether an earlier key with a name has left subscriptions, which belong to the name."""
    return any(entity.private["owner"] == KEY_PREFIX + name for entity in world.members(SUBSCRIPTIONS))


def _forbidden_name(name: str, context: Context) -> Forbidden:
    detail = f'the name "{name}" may have rights that you do not administer; choose another one'
    return Forbidden(caller=context.caller.name, detail=detail)


def _expiry(given: Any, now: datetime) -> datetime:
    if given is None:
        return now + timedelta(days=DEFAULT_DAYS)
    expires = datetime.fromisoformat(given)
    if not now < expires <= now + timedelta(days=MAX_DAYS):
        raise InvalidKey.at_pointer("value", "/expires", f"it is not within the next {MAX_DAYS} days")
    return expires


def _rotate(command: RotateKey, world: World, context: Context) -> EntityUpdated:
    entity = existing_entity(command.xid, world, context)
    check_administers(context, places_of_key(entity.attributes))
    _check_administers_name(entity.attributes["name"], world, context)
    if context.now >= ApiKey.from_entity(entity).expires:
        raise InvalidKey.at_pointer("expired", "/expires", "the key has expired; create another one")
    previous = {
        "previoushash": entity.private["hash"],
        "previousuntil": time_text(context.now + timedelta(seconds=command.grace)),
    }
    kept = {name: value for name, value in entity.private.items() if name not in ("previoushash", "previousuntil")}
    return EntityUpdated(
        attributes={**entity.attributes, "rotatedat": time_text(context.now)},
        private={**kept, "hash": command.hash, **(previous if command.grace else {})},
        changed=("rotatedat",),
        born=entity.born,
        **event_members(entity.xid, TYPE, entity.epoch + 1, world, context),
    )


def _revoke(command: RevokeKey, world: World, context: Context) -> EntityDeleted:
    entity = existing_entity(command.xid, world, context)
    check_administers(context, places_of_key(entity.attributes))
    return EntityDeleted(attributes={}, private={}, **event_members(entity.xid, TYPE, entity.epoch, world, context))
