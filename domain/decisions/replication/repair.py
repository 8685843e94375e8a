"""Repairs a diverged copy: one interaction makes it equal to the registry of its origin."""

from __future__ import annotations

from collections.abc import Iterator

from annals.domain.decisions.commands import Repair
from annals.domain.decisions.replication.append_foreign import registry_recount
from annals.domain.decisions.world import Context, Decision, World, event_members
from annals.domain.errors.http_errors import Diverged
from annals.domain.errors.problems import NotFound
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import differing_names


def repair(command: Repair, world: World, context: Context) -> Decision:
    """The events that set entities to their state in the other registry, and delete those that do not exist there.

    Raises: NotFound if the link is gone, Diverged if something in its scope was written since the comparison.
    """
    link = next((candidate for candidate in world.links if candidate.xid == command.xid), None)
    if link is None or link.is_promoted or not link.follows_log:
        raise NotFound(command.xid)
    if context.position != command.position and _is_scope_written(link, world, command.position):
        raise Diverged(link.xid, error_detail="the registry was written to while it was compared; repair it again")
    world.prefetch([*(event.xid for event in command.entities), *command.deleted_xids])
    events = sorted(_repair_events(command, link, world, context), key=lambda event: xids.event_order(event.xid))
    if events and not link.scope.is_whole:
        events = [*registry_recount(events, link, world), *events]
    return Decision(tuple(events), dict(command.documents), (command.xid,))


def _is_scope_written(link: Link, world: World, after: int) -> bool:
    """Whether there are events of a link's scope after a position."""
    return any(link.scope.has(difference.xid) for difference in world.differences(xids.REGISTRY, after))


def _repair_events(command: Repair, link: Link, world: World, context: Context) -> Iterator[EntityEvent]:
    for event in command.entities:
        entity = world.get(event.xid) if link.scope.has(event.xid) else None
        if isinstance(event, EntityDeleted):
            if entity is not None:
                common_members = event_members(entity.xid, entity.type, entity.epoch, world, context)
                yield EntityDeleted(attributes={}, private=event.private, reason=event.reason, **common_members)
        elif link.scope.has(event.xid):
            yield _remote_state_event(event, entity, world, context)
    for xid in command.deleted_xids:
        entity = world.get(xid) if link.scope.has(xid) else None
        if entity is not None:
            yield EntityDeleted(
                attributes={}, private={}, **event_members(entity.xid, entity.type, entity.epoch, world, context)
            )


def _remote_state_event(event: EntityEvent, entity: Entity | None, world: World, context: Context) -> EntityEvent:
    common_members = event_members(event.xid, event.type, event.epoch, world, context)
    if entity is None:
        return EntityCreated(attributes=event.attributes, private=event.private, **common_members)
    changed = tuple(sorted(differing_names(entity.attributes, event.attributes)))
    return EntityUpdated(
        attributes=event.attributes, private=event.private, born=entity.born, changed=changed, **common_members
    )
