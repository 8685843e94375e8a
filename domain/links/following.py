"""Interactions of another log as they become interactions of this one.

Everything that the API shows stays: xids, epochs, times, ids, images. What belongs to a log is this one's: positions,
revisions, births. What is apart from the tree never comes over, and of a part of a registry only what is in its scope;
the registry's own counts of Groups are then refreshed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain import xid as xids
from domain.entities import Entity
from domain.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed
from domain.links.foreign import Foreign
from domain.links.link import Link
from domain.refusals import Diverged
from domain.world import World


def taken_in(interaction: Foreign, link: Link, world: World) -> list[EntityEvent]:
    """The events that an interaction comes to here, none where nothing of it is wanted. Raises: Diverged."""
    events = [event for event in interaction.events if link.scope.has(event.xid)]
    if not events:
        return []
    world.prefetch(event.xid for event in events)
    taken = [_local(event, link, world) for event in events]
    return taken if link.scope.whole else [*recounted(taken, link, world), *taken]


def _local(event: EntityEvent, link: Link, world: World) -> EntityEvent:
    entity = world.get(event.xid)
    revision = world.revision(event.xid) + 1
    if isinstance(event, EntityCreated):
        if entity is None:
            return _placed(event, revision, None)
        if event.xid not in xids.ROOT_STREAMS:
            raise _diverged(link, event, "is here already")
        # An empty registry has a root, capabilities and a model of its own, until those that it copies come; that
        # these come into being is told to nobody (EV-03).
        return EntityRefreshed(**{**event.__dict__, "revision": revision, "born": entity.born})
    if entity is None or entity.xid != event.xid:
        raise _diverged(link, event, "is not here")
    return _placed(event, revision, None if isinstance(event, EntityDeleted) else entity.born)


def _placed(event: EntityEvent, revision: int, born: int | None) -> EntityEvent:
    """The event at its place in this log; itself where that is the same, because a copy is a tenth of a catch-up."""
    if event.revision == revision and event.born == born:
        return event
    return event.model_copy(update={"revision": revision, "born": born})


def recounted(events: Sequence[EntityEvent], link: Link, world: World) -> list[EntityEvent]:
    """The registry with as many Groups as it has then; nothing where none comes or goes. Raises: Diverged."""
    registry = world.get(xids.REGISTRY)
    assert registry is not None, "there is a registry before anything else"
    counts = {name: value for name, value in registry.attributes.items() if name.endswith("count")}
    for event in events:
        if len(xids.segments(event.xid)) == 2 and isinstance(event, EntityCreated | EntityDeleted):
            name = f"{event.type}count"
            if name not in counts:
                raise _diverged(link, event, "is of a type that the model does not have")
            counts[name] += 1 if isinstance(event, EntityCreated) else -1
    attributes = {**registry.attributes, **counts}
    return [] if attributes == registry.attributes else [_refreshed(registry, attributes, events[0], world)]


def _refreshed(registry: Entity, attributes: dict[str, Any], event: EntityEvent, world: World) -> EntityEvent:
    return EntityRefreshed(
        xid=registry.xid,
        type=registry.type,
        revision=world.revision(registry.xid) + 1,
        epoch=registry.epoch,
        attributes=attributes,
        private=registry.private,
        born=registry.born,
        xregcorrelationid=event.xregcorrelationid,
        time=event.time,
    )


def _diverged(link: Link, event: EntityEvent, reason: str) -> Diverged:
    detail = f"after {event.xregcorrelationid}, {event.xid} {reason}"
    return Diverged(link.xid, error_detail=detail, extensions={"xid": event.xid})
