"""Reads what Confluent's API knows of entities from the World of a decision."""

from __future__ import annotations

from annals.domain.confluent.commands import RegisterSchema
from annals.domain.confluent.import_commands import ImportSubject
from annals.domain.confluent.subjects import EntityMembers, FindEntity, candidate_xids
from annals.domain.decisions.world import World
from annals.domain.values import xid as xids


def entity_finder(world: World) -> FindEntity:
    """A function that finds live entities."""

    def find(xid: str) -> EntityMembers | None:
        entity = world.get(xid)
        return EntityMembers(entity.attributes, entity.private, entity.xid == xid) if entity is not None else None

    return find


def subject_xids(world: World, command: RegisterSchema | ImportSubject) -> list[str]:
    """What a command that adds versions to a subject reads: its Resource, or those that may be it, and two Versions."""
    subject = command.subject
    path = xids.entity_id(command.xid), subject.name
    newest = world.schemas.subject_versions([path])[path].newest if subject.name else ()
    if not newest:
        return candidate_xids(subject, command.context_ids)
    highest = newest[-1]
    return [highest.resource, highest.xid, f"{highest.resource}/versions/{highest.number + 1}"]
