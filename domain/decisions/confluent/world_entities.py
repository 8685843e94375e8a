"""Reads what Confluent's API knows of entities from the World of a decision."""

from __future__ import annotations

from annals.domain.confluent.subjects import EntityMembers, FindEntity
from annals.domain.decisions.world import World


def entity_finder(world: World) -> FindEntity:
    """A function that finds live entities."""

    def find(xid: str) -> EntityMembers | None:
        entity = world.get(xid)
        return EntityMembers(entity.attributes, entity.private, entity.xid == xid) if entity is not None else None

    return find
