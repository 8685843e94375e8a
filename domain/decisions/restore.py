"""Restore: entities that existed at a position are restored, and entities created since then are deleted.

It reads only streams with an event since the position. The past state is written as a whole and validated against the
current model. All rules of a write then apply to the change as to any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from domain.access.roles import Role
from domain.decisions import capabilities, replace_model, xrefs
from domain.decisions.changes.change_set import ChangeSet
from domain.decisions.changes.drafts import DefaultVersionRequest, EntityDraft, ResourceDraft
from domain.decisions.commands import Restore
from domain.decisions.compat import restore as compat_restore
from domain.decisions.delete import delete_entity
from domain.decisions.rules.readonly import check_writable
from domain.decisions.world import StreamDifference, World
from domain.decisions.write_resource import add_version
from domain.errors.problems import HasdocumentViolation, NotFound
from domain.model import Level, Model, ResourceType
from domain.registry.entities import Attributes, Entity, xref_target
from domain.registry.explicit_values import DEFAULT_MARKS, join_marks, retain_marks
from domain.values import xid as xids
from domain.values.json_text import dumps

#: Attributes that result from the Versions of a Resource, or from the time of the write.
_SETTLED: Final = frozenset({"modifiedat", "defaultversionid", "defaultversionsticky"})


def restore(changes: ChangeSet, command: Restore) -> None:
    """Applies one Restore to a change; the rules settle the rest at its end.

    Raises: NotFound if nothing existed there at the position; any Problem of a write.
    """
    past = PastRegistry(changes.world, command.position)
    _check_lived(past, command.xid)
    if xids.MODEL[1:] in command.include:
        _delete_obstacles(changes, past)
    for xid, define in _DEFINITIONS.items():
        if command.xid == xid or xid[1:] in command.include:
            then = past.entity(xid)
            assert then is not None, "it is as old as the registry"
            define(changes, then.attributes)
    if command.xid not in _DEFINITIONS:
        _Restoration(changes, past, command.xid).restore()
    changes.processed.append(command.xid)


class PastRegistry:
    """The registry at a log position."""

    def __init__(self, world: World, position: int) -> None:
        self.world = world
        self.position = position

    def entity(self, xid: str) -> Entity | None:
        """The entity that existed at exactly this xid."""
        first = next(self.world.differences(xid, self.position), None)
        differs = first is not None and xids.stream(first.xid) == xids.stream(xid)
        found = first.past if first is not None and differs else self.world.get(xid)
        return found if found is not None and found.xid == xid else None

    @cached_property
    def model(self) -> Model:
        """The model that was in force."""
        first = next(self.world.differences(xids.MODEL, self.position), None)
        return self.world.model if first is None or first.past is None else Model.of(first.past)

    def level(self, xid: str) -> Level:
        """The level of the registry or of a Group in that model."""
        return self.model.registry if xid == xids.REGISTRY else self.model.groups[xids.segments(xid)[0]].level

    def singular(self, group: str, resource: str) -> str | None:
        """The singular of a Resource type in that model; None if the type did not exist."""
        type = self.model.groups[group].resources.get(resource)
        return type.singular if type else None

    def type(self, resource: str) -> ResourceType:
        """The type of a Resource in that model."""
        group, _, plural, _ = xids.segments(resource)
        return self.model.groups[group].resources[plural]


def _check_lived(past: PastRegistry, xid: str) -> None:
    """Raises: NotFound. A collection existed if its owner did; one of Versions only if the owner had no xref."""
    parts = xids.segments(xid)
    owner = xids.parent(xid + "/x") if len(parts) % 2 and xid not in _DEFINITIONS else xid
    found = past.entity(owner or xids.REGISTRY)
    if found is None or (parts[4:] == ("versions",) and xref_target(found) is not None):
        raise NotFound(xid, detail=f"it did not exist at position {past.position}")


def _delete_obstacles(changes: ChangeSet, past: PastRegistry) -> None:
    """Deletes Groups that did not exist, and Resources of types that did not: a type with instances cannot be removed.

    A type with another singular is another type. Everything in a Group is deleted with it, so such Groups are deleted
    whatever their type. Entities that did exist are written again, so they do not prevent a change of the model.
    """
    for found in changes.world.differences(xids.REGISTRY, past.position):
        group, *below = xids.type_of(found.xid).split(".")
        if found.present is None or len(below) > 1 or changes.is_deleted(found.xid):
            continue
        if found.past is not None:
            changes.restored_streams.add(xids.stream(found.xid))
        elif not below or past.singular(group, *below) != changes.model.groups[group].resources[below[0]].singular:
            delete_entity(changes, found.present)


class _Restoration:
    """The restore of an entity, a collection or a meta."""

    def __init__(self, changes: ChangeSet, past: PastRegistry, xid: str) -> None:
        parts = xids.segments(xid)
        self._changes = changes
        self._past = past
        self._meta_only = parts[4:] == ("meta",)
        self._versions_only = parts[4:5] == ("versions",)
        self._xid = xids.join(*parts[:4]) if self._meta_only else xid

    def restore(self) -> None:
        differences = self._changes.world.differences(self._xid, self._past.position)
        for xid, found in groupby(differences, key=_settling_stream):
            if xid in _DEFINITIONS or self._changes.is_deleted(xid):
                continue
            if xids.type_of(xid).count(".") == 1:
                self._resource(xid, list(found))
            else:
                self._group(next(found))

    def _group(self, found: StreamDifference) -> None:
        """Restores the own attributes of the registry or a Group."""
        changes = self._changes
        if found.past is not None:
            draft = changes.registry() if found.xid == xids.REGISTRY else changes.group(found.past.xid, implied=False)
            differs = compat_restore.restore_group(draft, found.past)
            if not _restore_draft(draft, found.past.attributes, self._past.level(found.past.xid)) and differs:
                draft.touch()
        elif found.present is not None:
            delete_entity(changes, found.present)

    def _resource(self, stream: str, found: Sequence[StreamDifference]) -> None:
        own = next((one for one in found if xids.stream(one.xid) == stream), None)
        then = own.past if own else self._unchanged(found[0].xid)
        if then is None:
            if own is not None and own.present is not None:
                delete_entity(self._changes, own.present)
            return
        find = self._changes.existing_resource if self._meta_only else self._changes.resource
        resource = find(then.xid)
        if (pointer := xref_target(then)) is not None:
            self._point(resource, pointer, then)
            return
        if resource.xref is not None and not self._meta_only:
            self._check(resource)
            xrefs.remove_xref(self._changes, resource)
        xrefs.check_no_xref(resource, "meta" if self._meta_only else "versions")
        for one in found if not self._meta_only else ():
            if one is not own:
                self._version(resource, one, then)
        if not self._versions_only:
            self._meta(resource, then)

    def _unchanged(self, xid: str) -> Entity | None:
        """The past Resource if none of the differences is its own."""
        owner = xids.join(*xids.segments(xid)[:4])
        return self._past.entity(owner) if self._versions_only else self._changes.world.get(owner)

    def _point(self, resource: ResourceDraft, pointer: str, then: Entity) -> None:
        if resource.xref == pointer:
            return
        self._check(resource)
        xrefs.set_xref(self._changes, resource, pointer, {}, {"xref": pointer})
        resource.meta.attributes |= {"createdat": then.private["own"]["createdat"]}
        self._count_on(resource, then)

    def _version(self, resource: ResourceDraft, found: StreamDifference, definition: Entity) -> None:
        """definition: the past Resource."""
        if found.past is not None:
            self._bring_back_version(resource, found.past, definition)
        elif found.present is not None:
            self._check(resource)
            self._changes.load_versions(resource)
            self._changes.version(resource, found.present.id).gone = "deleted"
            resource.membership_changed = resource.needs_settling = True
        else:
            compat_restore.forget_later_versions(self._changes, found.xid, self._past.position)

    def _bring_back_version(self, resource: ResourceDraft, then: Entity, definition: Entity) -> None:
        draft, type = self._changes.version(resource, then.id), resource.type
        level, manual = self._past.type(resource.xid).version, type.versionmode == "manual"
        ordered, marks = _ordered(then, type), then.private.get(DEFAULT_MARKS, {})
        same = draft.document == then.document and ordered in (None, draft.ordered) and draft.marks == marks
        same = same and compat_restore.is_same_version(draft, then)
        if same and not _differs(draft, then.attributes, level, _SETTLED if manual else _SETTLED | {"ancestorid"}):
            return
        self._check(resource)
        if draft.is_new:
            add_version(self._changes, resource, draft, chosen=False)
        if not type.hasdocument and (then.document or then.attributes.get(f"{type.singular}url") is not None):
            raise HasdocumentViolation(draft.xid, plural=type.plural)
        compat_restore.restore_version(resource, draft, then, definition)
        draft.restore(then.attributes, level)
        draft.document, draft.ordered = then.document, ordered
        draft.marks = join_marks(retain_marks(marks, draft.attributes), draft.marks)
        draft.ancestor = then.attributes["ancestorid"] if manual else None
        resource.needs_settling = True

    def _meta(self, resource: ResourceDraft, then: Entity) -> None:
        image, level = then.attributes["meta"], self._past.type(resource.xid).meta
        sticky = bool(image["defaultversionsticky"])
        resource.default_request = DefaultVersionRequest(
            sticky=sticky, id=image["defaultversionid"] if sticky else None, keep=False
        )
        resource.needs_settling = True
        if resource.is_new:
            self._count_on(resource, then)
        if self._changes.context.role is not Role.ADMIN:
            image = {**image, "readonly": resource.readonly}  # only an admin changes that (ENT-140)
        differs = compat_restore.restore_definition(resource, then)
        if _restore_draft(resource.meta, image, level):
            self._check(resource)
            resource.readonly = bool(image["readonly"])
        elif differs:
            self._check(resource)
            resource.meta.touch()

    def _count_on(self, resource: ResourceDraft, then: Entity) -> None:
        """Prevents that ids which the server assigned in the restored lifetime are assigned again."""
        resource.counter = max(resource.counter, then.private.get("counter", 0))

    def _check(self, resource: ResourceDraft) -> None:
        """Raises: Readonly. An admin may write the meta of a read-only Resource."""
        if not (self._meta_only and self._changes.context.role is Role.ADMIN):
            check_writable(self._changes, resource.xid, frozenset())


def _settling_stream(difference: StreamDifference) -> str:
    """The stream of the registry, the Group or the Resource that settles with a difference."""
    return xids.stream(xids.join(*xids.segments(difference.xid)[:4]))


def _ordered(then: Entity, type: ResourceType) -> str | None:
    """The ordering time of a Version if its type needs one (ENT-101)."""
    return str(then.private.get("ordered", then.attributes["modifiedat"])) if type.versionmode == "modifiedat" else None


def _restore_draft(draft: EntityDraft, then: Attributes, level: Level) -> bool:
    """Restores a draft if it differs; returns whether it was written."""
    differs = _differs(draft, then, level)
    if differs:
        draft.restore(then, level)
    return differs


def _differs(draft: EntityDraft, then: Attributes, level: Level, settled: frozenset[str] = _SETTLED) -> bool:
    """Whether an entity differs from its past state, except in settled attributes. level: of the past model."""
    return draft.before is None or _comparable(level, then, settled) != _comparable(
        draft.previous_level, draft.before, settled
    )


def _comparable(level: Level, image: Attributes, settled: frozenset[str]) -> bytes:
    return dumps(sorted((name, value) for name, value in level.settable_values(image).items() if name not in settled))


_DEFINITIONS: Final[dict[str, Callable[[ChangeSet, Attributes], Any]]] = {
    xids.CAPABILITIES: lambda changes, then: capabilities.write_capabilities(changes, then, patch=False),
    xids.MODEL: lambda changes, then: replace_model.replace_model(changes, then["modelsource"]),
}
