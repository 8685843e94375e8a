"""The entities that decisions are likely to read, so that commands which are decided together need few queries.

An entity that is missing here is read by the decision itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from annals.domain.confluent.commands import RegisterSchema
from annals.domain.confluent.import_commands import ImportSubject
from annals.domain.decisions.changes.drafts import newest_version_id
from annals.domain.decisions.commands import DeleteEntities, SubmittedCommand, WriteTree
from annals.domain.decisions.confluent.world_entities import subject_xids
from annals.domain.decisions.world import World
from annals.domain.values import xid as xids


def target_xids(command: SubmittedCommand) -> tuple[str, ...]:
    """What a command is about, its owners, and the registry; only these of large trees."""
    if not isinstance(command, WriteTree | DeleteEntities):
        return ()
    return xids.REGISTRY, xids.CAPABILITIES, *xids.owners(command.xid), command.xid


def registered_subjects(commands: Iterable[SubmittedCommand]) -> set[tuple[str, str]]:
    """The Groups and names of the subjects in which commands register a schema."""
    found = (command for command in commands if isinstance(command, RegisterSchema))
    return {(xids.entity_id(command.xid), command.subject.name) for command in found}


def imported_subjects(commands: Iterable[SubmittedCommand]) -> set[tuple[str, str]]:
    """The Groups and names of the subjects that commands import, which compare all versions."""
    found = (command for command in commands if isinstance(command, ImportSubject))
    return {(xids.entity_id(command.xid), command.subject.name) for command in found}


def imported_ids(commands: Iterable[SubmittedCommand]) -> set[int]:
    """The ids that commands bring with them."""
    return {one.id for command in commands if isinstance(command, ImportSubject) for one in command.versions}


def version_xids(command: SubmittedCommand, world: World) -> Iterator[str]:
    """The Versions of a Resource that a change of it reads: the first, the default and the newest one."""
    if isinstance(command, RegisterSchema | ImportSubject):
        yield from subject_xids(world, command)
        return
    segments = xids.segments(command.xid) if isinstance(command, WriteTree | DeleteEntities) else []
    if len(segments) < 4:
        return
    resource = xids.join(*segments[:4])
    yield f"{resource}/versions/1"
    entity = world.get(resource)
    if entity is not None and (default := entity.attributes.get("versionid")):
        yield f"{resource}/versions/{default}"
        if newest := newest_version_id(entity):
            yield f"{resource}/versions/{newest}"
