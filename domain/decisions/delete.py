"""DeleteEntities: which entities a DELETE removes, and the checks before it.

Spec: core 1.0-rc4, "Deleting Entities"; HTTP binding 1.0-rc4, DELETE of entities and collections. Rules ENT-160 to 164.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.commands import DeleteEntities
from annals.domain.decisions.rules.epochs import check_epoch, parse_epoch
from annals.domain.decisions.rules.ids import take_id
from annals.domain.decisions.rules.readonly import check_writable, is_skipped
from annals.domain.decisions.rules.removal import check_removable
from annals.domain.decisions.write import request_default_version
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.errors.problems import BadFlag, BadRequest, MisplacedEpoch, NotFound
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json


def delete_entities(changes: ChangeSet, command: DeleteEntities) -> None:
    """Applies one DeleteEntities to a change; the rules complete it at its end.

    Raises: NotFound, MismatchedEpoch, MismatchedId, MisplacedEpoch, BadRequest.
    """
    depth = len(xids.segments(command.xid))
    if depth > 4:
        _check_versions(changes, command)
    if command.setdefaultversionid is not None and depth < 5:
        raise BadFlag(flag="setdefaultversionid")
    entities = _collection_targets(changes, command) if depth % 2 else [_single_target(changes, command)]
    entities = [entity for entity in entities if not _is_readonly_skipped(changes, command, entity)]
    for entity in entities:
        _check_removable(changes, entity)
    changes.world.prefetch_members(f"{entity.xid}/versions" for entity in entities if entity.type.count(".") == 1)
    for entity in entities:
        _DELETERS[entity.type.count(".")](changes, entity)
    if command.setdefaultversionid is not None:
        if command.setdefaultversionid == "request":
            raise BadFlag(flag="setdefaultversionid")
        resource = xids.resource_of(command.xid)
        request_default_version(changes.existing_resource(resource), command.setdefaultversionid)


def delete_entity(changes: ChangeSet, entity: Entity) -> None:
    """Deletes a Group or a Resource that is not protected. Raises: Readonly, BadRequest."""
    if entity.type.count(".") == 1:
        check_writable(changes, entity.xid, frozenset())
    _check_removable(changes, entity)
    _DELETERS[entity.type.count(".")](changes, entity)


def _check_versions(changes: ChangeSet, command: DeleteEntities) -> None:
    """Checks the Resource of a DELETE of Versions: it has no xref (ENT-135) and is not read-only (ENT-140)."""
    xid = xids.resource_of(command.xid)
    check_writable(changes, xid, command.ignore)
    if changes.find(xid) is not None:
        check_no_xref(changes.resource(xid))


def _is_readonly_skipped(changes: ChangeSet, command: DeleteEntities, entity: Entity) -> bool:
    """Whether a read-only Resource in a collection is skipped. Raises: Readonly, BadFlag (ENT-140)."""
    if entity.type.count(".") != 1:
        return False
    if command.xid == entity.xid:
        check_writable(changes, entity.xid, command.ignore)
    return is_skipped(changes, entity.xid, command.ignore)


def _single_target(changes: ChangeSet, command: DeleteEntities) -> Entity:
    entity = changes.existing_entity(command.xid)
    if command.epoch is not None:
        requested_epoch = parse_epoch(command.xid, command.epoch)
        if "epoch" not in command.ignore:
            check_epoch(command.xid, requested_epoch, entity.epoch)
    return entity


def _collection_targets(changes: ChangeSet, command: DeleteEntities) -> list[Entity]:
    """The members to delete. Unknown members are skipped; a missing owner is a missing target (ENT-161)."""
    owner = xids.parent(command.xid + "/x")
    if owner is not None and owner != xids.REGISTRY and changes.find(owner) is None:
        raise NotFound(command.xid)
    if command.targets is None:
        return list(changes.world.members(command.xid))
    changes.world.prefetch(f"{command.xid}/{id}" for id in command.targets if xids.ID.match(id))
    listed = [_listed_target(changes, command, id, entry) for id, entry in command.targets.items()]
    return [entity for entity in listed if entity is not None]


def _listed_target(changes: ChangeSet, command: DeleteEntities, id: str, entry: Json) -> Entity | None:
    xid = f"{command.xid}/{id}"
    if not isinstance(entry, dict):
        raise BadRequest(error_detail=f'the entry "{id}" for "{command.xid}" has to be an object')
    if not xids.ID.match(id):  # no entity can have it
        return None
    take_id(dict(entry), _singular_of(changes, xid), id, xid)
    entity = changes.find(xid)
    if entity is None:
        return None
    if "epoch" not in command.ignore:
        check_epoch(xid, _entry_epoch(entity, entry), entity.epoch)
    return entity


def _entry_epoch(entity: Entity, entry: Mapping[str, Json]) -> Json:
    """The epoch that an entry states; for a Resource it must be in its `meta` (ENT-163)."""
    if entity.type.count(".") != 1:
        return entry.get("epoch")
    meta = entry.get("meta")
    meta_epoch = meta.get("epoch") if isinstance(meta, dict) else None
    if meta_epoch is None and entry.get("epoch") is not None:
        raise MisplacedEpoch(entity.xid)
    return meta_epoch


def _singular_of(changes: ChangeSet, xid: str) -> str:
    segments = xids.segments(xid)
    if len(segments) == 2:
        return changes.group_type(xid).singular
    return "version" if len(segments) == 6 else changes.resource_type(xid)[1].singular


def _check_removable(changes: ChangeSet, entity: Entity) -> None:
    check_removable(entity, changes.context.now)
    if entity.type.count(".") == 0:
        for child in changes.stored_subtree(entity.xid):
            if child.type.count(".") == 1:
                is_skipped(changes, child.xid, frozenset())
                check_removable(child, changes.context.now)


def _delete_version(changes: ChangeSet, entity: Entity) -> None:
    resource = changes.existing_resource(xids.resource_of(entity.xid))
    changes.load_versions(resource)
    changes.version(resource, entity.id).deletion_reason = "deleted"
    resource.membership_changed = resource.needs_completion = True
    if not resource.live_versions():
        check_removable(changes.existing_entity(resource.xid), changes.context.now)


_DELETERS: Final[dict[int, Callable[[ChangeSet, Entity], None]]] = {
    0: ChangeSet.delete_group,
    1: lambda changes, entity: changes.delete_resource(changes.resource(entity.xid)),
    2: _delete_version,
}
