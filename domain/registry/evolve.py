"""The only place where an event changes state."""

from __future__ import annotations

from annals.domain.registry.entities import Entity
from annals.domain.registry.events import SALT, EntityDeleted, EntityEvent


def evolve(event: EntityEvent, position: int = 0) -> Entity | None:
    """The entity after its event, None once deleted.

    After-images are complete, so the previous state does not matter.
    """
    if isinstance(event, EntityDeleted):
        return None
    return Entity(
        xid=event.xid,
        type=event.type,
        epoch=event.epoch,
        attributes=event.attributes,
        private={name: value for name, value in event.private.items() if name != SALT},
        revision=event.revision,
        position=position,
        born=event.creation_position(position),
    )
