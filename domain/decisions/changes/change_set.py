"""ChangeSet: collects many writes and emits one event per entity.

It loads what a command touches through World, creates drafts, counts members and stores documents. At the end each
draft results in at most one event (EV-70), in this precedence: deleted, created, updated, refreshed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from annals.domain.compat.publications import NUMBER, Publication
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.decisions.changes.after_images import (
    AfterImage,
    cascaded_after_image,
    group_after_images,
    registry_after_images,
    resource_after_images,
    version_after_images,
)
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft, VersionDraft
from annals.domain.decisions.phases import PhaseCounter
from annals.domain.decisions.world import Context, World
from annals.domain.errors.problems import BadRequest, NotFound, Problem, UnknownGroupType, UnknownResourceType
from annals.domain.model import GroupType, Level, Model, ResourceType
from annals.domain.registry.entities import Attributes, Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.domain.values import timestamps
from annals.domain.values import xid as xids

D = TypeVar("D", GroupDraft, ResourceDraft, VersionDraft)


class ChangeSet:
    """All changes of one command, before they are events."""

    def __init__(self, world: World, context: Context) -> None:
        self.world = world
        self.context = context
        self.now = timestamps.to_text(context.now)
        self.model: Model = world.model
        self.documents: dict[str, bytes] = {}
        self.processed: list[str] = []
        self.number: int | None = None  # of the Version that a legacy API writes
        self.deleted_numbers: list[int] = []  # of the versions that Confluent's API deletes
        self.entries = PhaseCounter(context.report_phase, "validated")  # of the request's tree
        self.groups: dict[str, GroupDraft] = {}
        self.resources: dict[str, ResourceDraft] = {}
        self.root_after_images: dict[str, AfterImage] = {}  # the model and the capabilities
        # Streams that a restore brings back, even if their types have other names now.
        self.restored_streams: set[str] = set()
        self.restored_groups: set[str] = set()  # the xids of those that a restore writes
        self._subtrees: dict[str, Sequence[Entity]] = {}  # of Groups
        self._cascaded_entities: list[Entity] = []  # the descendants of a deleted Group or Resource
        self.version_chains: dict[str, tuple[str, ...]] = {}  # see `World.version_chain`, by the stream of the Resource
        self.accepted_resources: set[str] = set()  # whose Versions stay as they are, whatever their compatibility is
        self.assigns_missing_ids = False  # to schemas of Confluent's API that are not changed
        self._forgotten_schemas: dict[str, Sequence[int]] = {}  # soft-deleted ones of Confluent's API: their numbers
        self._forgotten: dict[str, tuple[int, int]] = {}  # retained Versions to forget: their numbers and epochs

    # --- types ---------------------------------------------------------------------------------------------------

    def group_type(self, xid: str) -> GroupType:
        plural = xids.segments(xid)[0]
        if plural not in self.model.groups:
            raise UnknownGroupType(xid, name=plural)
        return self.model.groups[plural]

    def resource_type(self, xid: str) -> tuple[GroupType, ResourceType]:
        group = self.group_type(xid)
        plural = xids.segments(xid)[2]
        if plural not in group.resources:
            raise UnknownResourceType(xid, group=group.plural, name=plural)
        return group, group.resources[plural]

    # --- drafts --------------------------------------------------------------------------------------------------

    def registry(self) -> GroupDraft:
        return self._group_draft(xids.REGISTRY)

    def group(self, xid: str, *, write_implied: bool = True) -> GroupDraft:
        """The draft of a Group, which may be new; a new Group is counted in the registry.

        write_implied: the request does not describe the Group, so a new one has its id only (ENT-3).
        """
        is_loaded = xids.stream(xid) in self.groups
        draft = self._group_draft(xid)
        if draft.is_new and not is_loaded:
            type = self.group_type(xid)
            self.registry().count(type.plural, +1)
            if write_implied:
                draft.write({}, patch=False, fixed={type.singular + "id": xids.entity_id(xid)})
        return draft

    def resource(self, xid: str) -> ResourceDraft:
        """The draft of a Resource, which may be new; missing parents are created (ENT-3)."""
        draft = self.resources.get(xids.stream(xid))
        if draft is None:
            draft = self._load_resource(xid)
            if draft.is_new:
                self.group(xids.join(*xids.segments(xid)[:2])).count(draft.type.plural, +1)
            self.resources[xids.stream(xid)] = draft
        return _check_case(draft, xid)

    def existing_resource(self, xid: str) -> ResourceDraft:
        """The draft of an existing Resource. Raises: NotFound."""
        self.existing_entity(xid)
        return self.resource(xid)

    def existing_entity(self, xid: str) -> Entity:
        """A live entity, by its exact xid. Raises: NotFound."""
        entity = self.find(xid)
        if entity is None:
            raise NotFound(xid)
        return entity

    def find(self, xid: str) -> Entity | None:
        """A live entity, by its exact xid; None if there is none."""
        entity = self.world.get(xid)
        return entity if entity is not None and entity.xid == xid else None

    def version(self, resource: ResourceDraft, versionid: str) -> VersionDraft:
        """The draft of one Version, which may be new."""
        draft = resource.versions.get(versionid.lower())
        if draft is None:
            xid = f"{resource.xid}/versions/{versionid}"
            entity = None if resource.has_all_versions else self.world.get(xid)
            draft = VersionDraft(xid, resource.type.version, resource.previous_type.version, entity, self.now)
            if entity is not None and entity.xid != xid:
                raise _case_conflict(xid, entity.xid)
            resource.versions[versionid.lower()] = draft
        return _check_case(draft, f"{resource.xid}/versions/{versionid}")

    def load_versions(self, resource: ResourceDraft) -> None:
        """Loads all Versions of a Resource."""
        if not resource.has_all_versions:
            for entity in self.world.members(resource.xid + "/versions"):
                if entity.id.lower() not in resource.versions:
                    draft = VersionDraft(
                        entity.xid, resource.type.version, resource.previous_type.version, entity, self.now
                    )
                    resource.versions[entity.id.lower()] = draft
            resource.has_all_versions = True

    def add_document(self, content: bytes) -> str | None:
        """Stores a document. Returns its SHA-256 in hex, or None for the empty document."""
        name = digest(content)
        if name is not None:
            self.documents[name] = content
        return name

    def prefetch_tree(self, tree: Attributes, xid: str, others: Sequence[str] = ()) -> None:
        """Announces other entities and those that a request's tree names, which `entries` will count."""
        names = [*others, *xids_in_tree(tree, xid, self.model)]
        self.entries.total = len(names) - len(others)
        self.world.prefetch(names)

    # --- deletions -----------------------------------------------------------------------------------------------

    def stored_subtree(self, group: str) -> Sequence[Entity]:
        """The stored entities below a Group, which are read once."""
        if group not in self._subtrees:
            self._subtrees[group] = tuple(self.world.subtree(group))
        return self._subtrees[group]

    def delete_group(self, entity: Entity) -> None:
        draft = self._group_draft(entity.xid)
        draft.is_deleted = True
        self._cascaded_entities.extend(self.stored_subtree(entity.xid))
        self.registry().count(self.group_type(entity.xid).plural, -1)

    def delete_resource(self, resource: ResourceDraft) -> None:
        """Marks a Resource and all its Versions as deleted."""
        if resource.is_deleted:
            return
        resource.is_deleted = True
        self.load_versions(resource)
        for version in resource.live_versions():
            version.deletion_reason = "deleted"
        self._group_draft(xids.join(*xids.segments(resource.xid)[:2])).count(resource.type.plural, -1)

    def forget_publications(self, publications: Iterable[Publication]) -> None:
        """Drops retained Versions, which only the legacy APIs still show.

        A Version that this change creates again stays.
        """
        for publication in publications:
            self._forgotten[publication.xid] = (
                publication.number,
                self.world.publications.pruned_entity(publication).epoch,
            )

    def forget_schemas(self, xid: str, numbers: Sequence[int]) -> None:
        """Drops soft-deleted versions of Confluent's API for good. xid: of the deleted Version; numbers: of those."""
        self._forgotten_schemas[xid] = numbers

    def is_deleted(self, xid: str) -> bool:
        """Whether this change deletes a Group or a Resource, directly or with its Group."""
        group = self.groups.get(xids.stream(xids.join(*xids.segments(xid)[:2])))
        resource = self.resources.get(xids.stream(xid))
        return bool((group and group.is_deleted) or (resource and resource.is_deleted))

    def is_version_deleted(self, version: str) -> bool:
        """Whether this change removes a Version, including one that only the legacy APIs still show."""
        resource = xids.resource_of(version)
        draft = self.resources.get(xids.stream(resource))
        version_draft = draft.versions.get(xids.entity_id(version).lower()) if draft else None
        return (
            self.is_deleted(resource)
            or version in self._forgotten
            or (version_draft is not None and version_draft.deletion_reason is not None)
        )

    # --- events --------------------------------------------------------------------------------------------------

    def events(self) -> tuple[EntityEvent, ...]:
        """One event for each entity that differs from its previous state, in the order of EV-77."""
        after_images = sorted(self._after_images(), key=lambda fact: xids.event_order(fact.xid), reverse=True)
        self.world.prefetch(fact.xid for fact in after_images)
        events: list[EntityEvent] = []
        counter = PhaseCounter(self.context.report_phase, "built", len(after_images))
        while after_images:  # an event copies its images, so each after-image is freed as soon as its event exists
            events.append(self._event(after_images.pop()))
            counter.add()
        return tuple(events)

    def _after_images(self) -> Iterator[AfterImage]:
        yield from self.root_after_images.values()
        yield from (cascaded_after_image(entity) for entity in self._cascaded_entities)
        for xid, (number, epoch) in self._forgotten.items():
            yield AfterImage(xid, epoch, private={NUMBER: number}, deletion_reason="forgotten")
        for xid, numbers in self._forgotten_schemas.items():
            yield AfterImage(xid, 0, private={CONFLUENT: {"forgotten": list(numbers)}}, deletion_reason="forgotten")
        for draft in self.groups.values():
            if draft.xid == xids.REGISTRY:
                yield from registry_after_images(draft, self.model, self.world.model)
            else:
                yield from group_after_images(draft, None if draft.is_deleted else self.group_type(draft.xid))
        for resource in self.resources.values():
            yield from resource_after_images(resource)
            for version in resource.versions.values():
                yield from version_after_images(version, resource)

    def _event(self, after_image: AfterImage) -> EntityEvent:
        common_members: dict[str, Any] = {
            "xid": after_image.xid,
            "type": xids.type_of(after_image.xid),
            "revision": self.world.revision(after_image.xid) + 1,
            "epoch": after_image.epoch,
            "xregcorrelationid": self.context.xregcorrelationid,
            "time": self.context.now,
        }
        if after_image.deletion_reason is not None:
            return EntityDeleted(
                attributes={}, private=after_image.private, reason=after_image.deletion_reason, **common_members
            )
        event_class = (
            EntityCreated if after_image.is_new else EntityUpdated if after_image.is_updated else EntityRefreshed
        )
        return event_class(
            attributes=after_image.attributes,
            private=after_image.private,
            changed=after_image.changed,
            deprecated_changed=after_image.deprecated_changed,
            born=None if after_image.is_new else self._creation_position(after_image.xid),
            **common_members,
        )

    def _creation_position(self, xid: str) -> int | None:
        """The log position at which a live entity was created, if it is known."""
        entity = self.world.get(xid)
        return entity.born if entity is not None else None

    # --- loading -------------------------------------------------------------------------------------------------

    def _group_draft(self, xid: str) -> GroupDraft:
        draft = self.groups.get(xids.stream(xid))
        if draft is None:
            level, previous_level = self._group_levels(xid)
            entity = self.world.get(xid)
            if entity is not None and entity.xid != xid:
                raise _case_conflict(xid, entity.xid)
            draft = self.groups[xids.stream(xid)] = GroupDraft(
                xid, level, previous_level, entity, self.now, self.context.caller.link
            )
        return _check_case(draft, xid)

    def _load_resource(self, xid: str) -> ResourceDraft:
        group, type = self.resource_type(xid)
        entity = self.world.get(xid)
        if entity is not None and entity.xid != xid:
            raise _case_conflict(xid, entity.xid)
        previous_group = self.world.model.groups.get(group.plural)
        previous_type = previous_group.resources.get(type.plural) if previous_group else None
        return ResourceDraft(xid, type, previous_type or type, entity, self.now, self.context.caller.link)

    def _group_levels(self, xid: str) -> tuple[Level, Level]:
        """The level of the registry or of a Group, after and before this change."""
        previous_model = self.world.model
        if xid == xids.REGISTRY:
            return self.model.registry, previous_model.registry
        type = self.group_type(xid)
        return type.level, previous_model.groups[
            type.plural
        ].level if type.plural in previous_model.groups else type.level


def xids_in_tree(tree: Attributes, xid: str, model: Model) -> Iterable[str]:
    """The xids that a tree of Groups, Resources and Versions names, for World.prefetch. Malformed parts are skipped."""
    segments = xids.segments(xid)
    collections: dict[str, Any] = model.groups if not segments else {}
    if len(segments) == 2 and segments[0] in model.groups:
        collections = model.groups[segments[0]].resources
    if len(segments) == 4:
        collections = {"versions": None}
    for plural in collections:
        members = tree.get(plural)
        for id, body in members.items() if isinstance(members, dict) else ():
            if not xids.ID.match(id):
                continue
            child = xids.join(*segments, plural, id)
            yield child
            if isinstance(body, dict):
                yield from xids_in_tree(body, child, model)


def _check_case(draft: D, xid: str) -> D:
    if draft.xid != xid:
        raise _case_conflict(xid, draft.xid)
    return draft


def _case_conflict(xid: str, other: str) -> Problem:
    return BadRequest(
        error_detail=f'"{xid}" differs only in letter case from "{other}", and ids are unique without case'
    )
