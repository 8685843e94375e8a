"""The one place where an event changes state."""

from __future__ import annotations

from domain.entities import Entity
from domain.events import BORN, EntityCreated, EntityDeleted, EntityEvent


def evolve(event: EntityEvent, position: int = 0) -> Entity | None:
    """The entity after its event, None once deleted. After-images are complete, so what was before does not matter."""
    if isinstance(event, EntityDeleted):
        return None
    private = dict(event.private)
    born = private.pop(BORN, position if isinstance(event, EntityCreated) and position else None)
    return Entity(
        xid=event.xid,
        type=event.type,
        epoch=event.epoch,
        attributes=event.attributes,
        private=private,
        revision=event.revision,
        position=position,
        born=born,
    )
