"""Restore: entities that existed at a position are restored, and entities created since then are deleted.

It reads only streams with an event since the position. The past state is written as a whole and validated against the
current model. All rules of a write then apply to the change as to any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from annals.domain.access.roles import Role
from annals.domain.confluent.facts import CONFLUENT, facts_of, number_of, subject_name, with_facts
from annals.domain.decisions import capabilities, replace_model, xrefs
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import DefaultVersionRequest, EntityDraft, GroupDraft, ResourceDraft
from annals.domain.decisions.commands import Restore
from annals.domain.decisions.compat import restore as compat_restore
from annals.domain.decisions.confluent.subject_settings import drop_settings
from annals.domain.decisions.delete import delete_entity
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.world import StreamDifference, World
from annals.domain.decisions.write_resource import add_version
from annals.domain.errors.problems import HasdocumentViolation, NotFound
from annals.domain.model import Level, Model, ResourceType
from annals.domain.registry.entities import Attributes, Entity, xref_target
from annals.domain.registry.explicit_values import DEFAULT_MARKS, join_marks, retain_marks
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps

#: Attributes that result from the Versions of a Resource, or from the time of the write.
_SETTLED_NAMES: Final = frozenset({"modifiedat", "defaultversionid", "defaultversionsticky"})


def restore(changes: ChangeSet, command: Restore) -> None:
    """Applies one Restore to a change; the rules complete it at its end.

    Raises: NotFound if nothing existed there at the position; any Problem of a write.
    """
    past_registry = PastRegistry(changes.world, command.position)
    _check_existed(past_registry, command.xid)
    if xids.MODEL[1:] in command.include:
        _delete_obstacles(changes, past_registry)
    for xid, record_definition in _RESTORE_DEFINITIONS.items():
        if command.xid == xid or xid[1:] in command.include:
            past_entity = past_registry.entity(xid)
            assert past_entity is not None, "it is as old as the registry"
            record_definition(changes, past_entity.attributes)
    if command.xid not in _RESTORE_DEFINITIONS:
        _Restoration(changes, past_registry, command.xid).restore()
    changes.processed.append(command.xid)


class PastRegistry:
    """The registry at a log position."""

    def __init__(self, world: World, position: int) -> None:
        self.world = world
        self.position = position

    def entity(self, xid: str) -> Entity | None:
        """The entity that existed at exactly this xid."""
        first_difference = next(self.world.differences(xid, self.position), None)
        is_different = first_difference is not None and xids.stream(first_difference.xid) == xids.stream(xid)
        past_entity = first_difference.past if first_difference is not None and is_different else self.world.get(xid)
        return past_entity if past_entity is not None and past_entity.xid == xid else None

    @cached_property
    def model(self) -> Model:
        """The model that was in force."""
        first = next(self.world.differences(xids.MODEL, self.position), None)
        return self.world.model if first is None or first.past is None else Model.from_entity(first.past)

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


def _check_existed(past_registry: PastRegistry, xid: str) -> None:
    """Raises: NotFound. A collection existed if its owner did; one of Versions only if the owner had no xref."""
    segments = xids.segments(xid)
    owner = xids.parent(xid + "/x") if len(segments) % 2 and xid not in _RESTORE_DEFINITIONS else xid
    past_owner = past_registry.entity(owner or xids.REGISTRY)
    if past_owner is None or (segments[4:] == ("versions",) and xref_target(past_owner) is not None):
        raise NotFound(xid, detail=f"it did not exist at position {past_registry.position}")


def _delete_obstacles(changes: ChangeSet, past_registry: PastRegistry) -> None:
    """Deletes Groups that did not exist, and Resources of types that did not: a type with instances cannot be removed.

    A type with another singular is another type. Everything in a Group is deleted with it, so such Groups are deleted
    whatever their type. Entities that did exist are written again, so they do not prevent a change of the model.
    """
    for difference in changes.world.differences(xids.REGISTRY, past_registry.position):
        group, *resource_types = xids.type_of(difference.xid).split(".")
        if difference.present is None or len(resource_types) > 1 or changes.is_deleted(difference.xid):
            continue
        if difference.past is not None:
            changes.restored_streams.add(xids.stream(difference.xid))
        elif (
            not resource_types
            or past_registry.singular(group, *resource_types)
            != changes.model.groups[group].resources[resource_types[0]].singular
        ):
            delete_entity(changes, difference.present)


class _Restoration:
    """The restore of an entity, a collection or a meta."""

    def __init__(self, changes: ChangeSet, past_registry: PastRegistry, xid: str) -> None:
        segments = xids.segments(xid)
        self._changes = changes
        self._past_registry = past_registry
        self._meta_only = segments[4:] == ("meta",)
        self._versions_only = segments[4:5] == ("versions",)
        self._xid = xids.join(*segments[:4]) if self._meta_only else xid

    def restore(self) -> None:
        differences = self._changes.world.differences(self._xid, self._past_registry.position)
        for xid, stream_differences in groupby(differences, key=_owning_stream):
            if xid in _RESTORE_DEFINITIONS or self._changes.is_deleted(xid):
                continue
            if xids.type_of(xid).count(".") == 1:
                self._restore_resource(xid, list(stream_differences))
            else:
                self._restore_group(next(stream_differences))

    def _restore_group(self, difference: StreamDifference) -> None:
        """Restores the own attributes of the registry or a Group."""
        changes = self._changes
        if difference.past is not None:
            draft = (
                changes.registry()
                if difference.xid == xids.REGISTRY
                else changes.group(difference.past.xid, write_implied=False)
            )
            is_facade_changed = compat_restore.restore_group(draft, difference.past)
            is_facade_changed |= _restore_facts(draft, difference.past)
            changes.restored_groups.add(draft.xid)
            if (
                not _restore_draft(draft, difference.past.attributes, self._past_registry.level(difference.past.xid))
                and is_facade_changed
            ):
                draft.touch()
        elif difference.present is not None:
            delete_entity(changes, difference.present)

    def _restore_resource(self, stream: str, differences: Sequence[StreamDifference]) -> None:
        resource_difference = next(
            (difference for difference in differences if xids.stream(difference.xid) == stream), None
        )
        past_entity = resource_difference.past if resource_difference else self._past_resource(differences[0].xid)
        if past_entity is None:
            if resource_difference is not None and resource_difference.present is not None:
                delete_entity(self._changes, resource_difference.present)
            return
        find_resource = self._changes.existing_resource if self._meta_only else self._changes.resource
        resource = find_resource(past_entity.xid)
        if (pointer := xref_target(past_entity)) is not None:
            self._restore_pointer(resource, pointer, past_entity)
            return
        if resource.xref is not None and not self._meta_only:
            self._check_writable(resource)
            xrefs.remove_xref(self._changes, resource)
        xrefs.check_no_xref(resource, "meta" if self._meta_only else "versions")
        for difference in differences if not self._meta_only else ():
            if difference is not resource_difference:
                self._restore_version(resource, difference, past_entity)
        if not self._versions_only:
            self._restore_meta(resource, past_entity)

    def _past_resource(self, xid: str) -> Entity | None:
        """The past Resource if none of the differences is its own."""
        owner = xids.resource_of(xid)
        return self._past_registry.entity(owner) if self._versions_only else self._changes.world.get(owner)

    def _restore_pointer(self, resource: ResourceDraft, pointer: str, past_entity: Entity) -> None:
        if resource.xref == pointer:
            return
        self._check_writable(resource)
        xrefs.set_xref(self._changes, resource, pointer, {}, {"xref": pointer})
        resource.meta.attributes |= {"createdat": past_entity.private["own"]["createdat"]}
        self._raise_counter(resource, past_entity)

    def _restore_version(self, resource: ResourceDraft, difference: StreamDifference, definition: Entity) -> None:
        """definition: the past Resource."""
        if difference.past is not None:
            self._recreate_version(resource, difference.past, definition)
        elif difference.present is not None:
            self._check_writable(resource)
            self._changes.load_versions(resource)
            self._changes.version(resource, difference.present.id).deletion_reason = "deleted"
            resource.membership_changed = resource.needs_completion = True
        else:
            compat_restore.forget_later_versions(self._changes, difference.xid, self._past_registry.position)

    def _recreate_version(self, resource: ResourceDraft, past_entity: Entity, definition: Entity) -> None:
        draft, type = self._changes.version(resource, past_entity.id), resource.type
        level, is_manual = self._past_registry.type(resource.xid).version, type.versionmode == "manual"
        ordered, marks = _ordering_time(past_entity, type), past_entity.private.get(DEFAULT_MARKS, {})
        is_same = (
            draft.document == past_entity.document
            and ordered in (None, draft.ordering_time)
            and draft.default_marks == marks
        )
        is_same = is_same and compat_restore.is_same_version(draft, past_entity)
        if is_same and not _is_different(
            draft, past_entity.attributes, level, _SETTLED_NAMES if is_manual else _SETTLED_NAMES | {"ancestorid"}
        ):
            return
        self._check_writable(resource)
        if draft.is_new:
            add_version(resource, draft, is_client_id=False)
        if not type.hasdocument and (
            past_entity.document or past_entity.attributes.get(f"{type.singular}url") is not None
        ):
            raise HasdocumentViolation(draft.xid, plural=type.plural)
        compat_restore.restore_version(resource, draft, past_entity, definition)
        past_facts = facts_of(past_entity.private)
        number = number_of(past_entity.id, past_facts) if draft.is_new and "id" in past_facts else None
        draft.confluent = with_facts(past_facts, number=number or past_facts.get("number"))
        draft.restore(past_entity.attributes, level)
        draft.document, draft.ordering_time = past_entity.document, ordered
        draft.default_marks = join_marks(retain_marks(marks, draft.attributes), draft.default_marks)
        draft.ancestor = past_entity.attributes["ancestorid"] if is_manual else None
        resource.needs_completion = True

    def _restore_meta(self, resource: ResourceDraft, past_entity: Entity) -> None:
        past_meta, level = past_entity.attributes["meta"], self._past_registry.type(resource.xid).meta
        sticky = bool(past_meta["defaultversionsticky"])
        resource.default_request = DefaultVersionRequest(
            is_sticky=sticky, id=past_meta["defaultversionid"] if sticky else None, keeps_current=False
        )
        resource.needs_completion = True
        self._raise_counter(resource, past_entity)
        if self._changes.context.role is not Role.ADMIN:
            past_meta = {**past_meta, "readonly": resource.readonly}  # only an admin changes that (ENT-140)
        is_facade_changed = compat_restore.restore_definition(resource, past_entity)
        is_facade_changed |= _restore_facts(resource, past_entity)
        drop_settings(self._changes, xids.owners(resource.xid)[0], subject_name(resource.xid, resource.confluent))
        if _restore_draft(resource.meta, past_meta, level):
            self._check_writable(resource)
            resource.readonly = bool(past_meta["readonly"])
        elif is_facade_changed:
            self._check_writable(resource)
            resource.meta.touch()

    def _raise_counter(self, resource: ResourceDraft, past_entity: Entity) -> None:
        """Prevents the server from assigning ids again that it assigned in the restored lifetime."""
        resource.counter = max(resource.counter, past_entity.private.get("counter", 0))

    def _check_writable(self, resource: ResourceDraft) -> None:
        """Raises: Readonly. An admin may write the meta of a read-only Resource."""
        if not (self._meta_only and self._changes.context.role is Role.ADMIN):
            check_writable(self._changes, resource.xid, frozenset())


def _restore_facts(draft: GroupDraft | ResourceDraft, past_entity: Entity) -> bool:
    """Sets what Confluent's API knew of an entity; returns whether that differs. The highest number stays."""
    previous, kept = draft.confluent, {"highest"} & draft.confluent.keys()
    past_facts = past_entity.private.get(CONFLUENT, {})
    draft.confluent = {**past_facts, **{name: previous[name] for name in kept}}
    return previous != draft.confluent


def _owning_stream(difference: StreamDifference) -> str:
    """The stream of the registry, the Group or the Resource that a difference belongs to."""
    return xids.stream(xids.resource_of(difference.xid))


def _ordering_time(past_entity: Entity, type: ResourceType) -> str | None:
    """The ordering time of a Version if its type needs one (ENT-101)."""
    return (
        str(past_entity.private.get("ordered", past_entity.attributes["modifiedat"]))
        if type.versionmode == "modifiedat"
        else None
    )


def _restore_draft(draft: EntityDraft, past_attributes: Attributes, level: Level) -> bool:
    """Restores a draft if it differs; returns whether it was written."""
    is_different = _is_different(draft, past_attributes, level)
    if is_different:
        draft.restore(past_attributes, level)
    return is_different


def _is_different(
    draft: EntityDraft, past_attributes: Attributes, level: Level, ignored_names: frozenset[str] = _SETTLED_NAMES
) -> bool:
    """Whether an entity differs from its past state, except in ignored attributes. level: of the past model."""
    return draft.before is None or _comparable_json(level, past_attributes, ignored_names) != _comparable_json(
        draft.previous_level, draft.before, ignored_names
    )


def _comparable_json(level: Level, attributes: Attributes, ignored_names: frozenset[str]) -> bytes:
    return dumps(
        sorted((name, value) for name, value in level.settable_values(attributes).items() if name not in ignored_names)
    )


_RESTORE_DEFINITIONS: Final[dict[str, Callable[[ChangeSet, Attributes], Any]]] = {
    xids.CAPABILITIES: lambda changes, then: capabilities.write_capabilities(changes, then, patch=False),
    xids.MODEL: lambda changes, then: replace_model.replace_model(changes, then["modelsource"]),
}
