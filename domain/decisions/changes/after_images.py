"""From drafts to after-images: the final state of each entity, whether it was updated, and which names changed.

Rules EV-42 to EV-67. Changed names result from comparing the images before and after the whole interaction. An update
also lists some names regardless of their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from annals.domain.compat.legacy_apis import FACADE, version_number
from annals.domain.compat.publications import NUMBER
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.decisions.changes.drafts import NEWEST, EntityDraft, GroupDraft, ResourceDraft, VersionDraft
from annals.domain.model import GroupType, Model
from annals.domain.model.spec_attributes import SPECVERSION
from annals.domain.registry.entities import Attributes, Entity
from annals.domain.registry.events import DeletionReason
from annals.domain.replication import LINK
from annals.domain.values import xid as xids
from annals.domain.values.json_text import is_equal

#: Names that a Resource has in addition to its default Version's attributes.
_RESOURCE_ONLY: Final = frozenset({"meta", "versionscount"})
_META_TOUCH: Final = frozenset({"meta.epoch", "meta.modifiedat"})


#: The members of an entity that is deleted.
_NO_MEMBERS: Final[dict[str, Any]] = {}


class AfterImage(NamedTuple):
    """The final state of one entity. deletion_reason: the reason of its deletion.

    is_updated: neither new nor gone, and not a refresh.
    """

    xid: str
    epoch: int
    attributes: Attributes = _NO_MEMBERS
    private: dict[str, Any] = _NO_MEMBERS
    changed: tuple[str, ...] = ()
    deprecated_changed: tuple[str, ...] | None = None
    is_new: bool = False
    is_updated: bool = False
    deletion_reason: DeletionReason | None = None


def registry_after_images(draft: GroupDraft, model: Model, previous: Model) -> Iterator[AfterImage]:
    """The registry, if it is new or updated.

    A count that appears or vanishes with its Group type is not a change (T84).
    """
    if not draft.is_updated:
        return
    image = draft.after_image(specversion=SPECVERSION, **draft.counts(model.groups))
    counts = {f"{plural}count" for plural in (*model.groups, *previous.groups)}
    changed = (_differing_names(draft.before, image) - counts) | draft.always_changed
    yield _after_image(draft, image, _without_empty({LINK: draft.link, CONFLUENT: draft.confluent}), changed)


def group_after_images(draft: GroupDraft, type: GroupType | None) -> Iterator[AfterImage]:
    """A Group that is new, updated, refreshed or deleted. type: None for a deleted Group."""
    if type is None:
        yield AfterImage(draft.xid, draft.before["epoch"] if draft.before else 0, deletion_reason="deleted")
        return
    image = draft.after_image(**draft.counts(type.resources))
    private = _without_empty({FACADE: draft.facade, LINK: draft.link, CONFLUENT: draft.confluent})
    if not draft.is_updated and image == draft.before:
        return
    counts = {f"{plural}count" for plural in type.resources}
    changed = (_differing_names(draft.before, image) - counts) | draft.always_changed
    yield _after_image(draft, image, private, changed, _deprecation_changes(draft.before or {}, image))


def version_after_images(draft: VersionDraft, resource: ResourceDraft) -> Iterator[AfterImage]:
    """A Version that is new, updated, refreshed or gone."""
    if draft.deletion_reason is not None:
        yield AfterImage(
            draft.xid,
            draft.epoch,
            private=_deletion_number(draft.xid, draft.private()),
            deletion_reason=draft.deletion_reason,
        )
        return
    image, private = _version_image(draft, resource), draft.private()
    stored = draft.entity
    if draft.is_updated or stored is None or stored.attributes != image or stored.private != private:
        changed = (
            _differing_names(draft.before, image) | draft.always_changed | _document_changed(stored, private, resource)
        )
        yield _after_image(draft, image, private, changed)


def cascaded_after_image(entity: Entity) -> AfterImage:
    """The deletion of an entity whose parent is deleted."""
    return AfterImage(
        entity.xid, entity.epoch, private=_deletion_number(entity.xid, entity.private), deletion_reason="deleted"
    )


def resource_after_images(resource: ResourceDraft) -> Iterator[AfterImage]:
    """A Resource that is new, updated, refreshed or gone."""
    if resource.is_deleted:
        yield AfterImage(resource.xid, resource.meta.epoch, deletion_reason="deleted")
        return
    default = resource.versions.get(str(resource.meta.attributes.get("defaultversionid")).lower())
    image, private = _pointer_image(resource) if resource.xref is not None else _resource_image(resource, default)
    stored = resource.entity
    updated = resource.meta.is_updated or (default is not None and default.is_updated)
    if updated or stored is None or stored.attributes != image or stored.private != private:
        yield AfterImage(
            resource.xid,
            resource.meta.epoch,
            image,
            private,
            changed=_sort_names(_resource_changes(resource, default, image, private)) if stored and updated else (),
            deprecated_changed=_deprecation_changes(stored.attributes["meta"] if stored else {}, image["meta"]),
            is_new=stored is None,
            is_updated=updated,
        )


def _after_image(
    draft: EntityDraft,
    image: Attributes,
    private: dict[str, Any],
    changed: set[str],
    # For a Group only: on the registry and on Versions, `deprecated` is an extension whose value has any type.
    deprecation: tuple[str, ...] | None = None,
) -> AfterImage:
    updated = draft.is_written or draft.is_touched
    return AfterImage(
        draft.xid,
        draft.epoch,
        image,
        private,
        changed=_sort_names(changed | draft.touched_names()) if draft.before is not None and updated else (),
        deprecated_changed=deprecation,
        is_new=draft.before is None,
        is_updated=updated,
    )


def _version_image(draft: VersionDraft, resource: ResourceDraft) -> Attributes:
    return draft.after_image(
        isdefault=draft.id == resource.meta.attributes["defaultversionid"], **draft.validation_results
    )


def _resource_image(resource: ResourceDraft, default: VersionDraft | None) -> tuple[Attributes, dict[str, Any]]:
    """default: None if the request never loaded the default Version; then the default Version is unchanged."""
    stored = resource.entity
    if default is not None:
        default_attributes = _version_image(default, resource)
        private: dict[str, Any] = {"document": default.document}
    else:
        assert stored is not None, "all Versions of a new Resource are loaded"
        default_attributes = {name: value for name, value in stored.attributes.items() if name not in _RESOURCE_ONLY}
        private = {"document": stored.document}
    image = {
        **default_attributes,
        "meta": resource.meta.after_image(readonly=resource.readonly),
        "versionscount": _versions_count(resource),
    }
    private["counter"] = resource.counter
    if resource.meta.attributes.get("defaultversionsticky"):
        private[NEWEST] = resource.newest
    private |= {FACADE: resource.facade, LINK: resource.link, CONFLUENT: resource.confluent}
    return image, _without_empty(private)


def _versions_count(resource: ResourceDraft) -> int:
    live_versions, stored = resource.live_versions(), resource.entity
    if resource.has_all_versions or stored is None:
        return len(live_versions)
    stored_count: int = stored.attributes["versionscount"]
    pruned_count = len(resource.versions) - len(live_versions)
    return stored_count + sum(version.is_new for version in live_versions) - pruned_count


def _pointer_image(resource: ResourceDraft) -> tuple[Attributes, dict[str, Any]]:
    """A Resource with an xref: it shows only its ids and the xref. Its times and its counter are in `private`."""
    id_attributes = {resource.type.singular + "id": xids.entity_id(resource.xid)}
    timestamps = {name: resource.meta.attributes[name] for name in ("createdat", "modifiedat")}
    image = {**id_attributes, "meta": {**id_attributes, "xref": resource.xref}}
    private = {"own": timestamps, "counter": resource.counter, FACADE: resource.facade, LINK: resource.link}
    return image, _without_empty(private | {CONFLUENT: resource.confluent})


def _without_empty(private: dict[str, Any]) -> dict[str, Any]:
    """The private members that have a value."""
    return {name: value for name, value in private.items() if value}


def _deletion_number(xid: str, private: dict[str, Any]) -> dict[str, Any]:
    """The number that a deletion records for a Version whose number is not its id."""
    return {NUMBER: version_number(xids.entity_id(xid), private)} if "number" in private.get(FACADE, {}) else {}


def _resource_changes(
    resource: ResourceDraft, default: VersionDraft | None, image: Attributes, private: dict[str, Any]
) -> set[str]:
    """The changed names of a Resource (EV-57 to EV-61)."""
    assert resource.entity is not None
    previous = resource.entity.attributes
    changed = _differing_names(previous, image) - _RESOURCE_ONLY
    changed |= _document_changed(resource.entity, private, resource)
    if default is not None and not default.is_new:
        changed |= default.touched_names()
    if previous.get("versionid") != image.get("versionid"):
        changed |= (previous.keys() | image.keys()) - _RESOURCE_ONLY - {resource.type.singular + "id"}
        if private.get("document") or resource.entity.document:
            changed.add(resource.type.singular)
    changed |= {f"meta.{name}" for name in _differing_names(previous["meta"], image["meta"])}
    if resource.meta.is_written or resource.meta.is_touched:
        changed |= _META_TOUCH
    if resource.membership_changed:
        changed |= {"versions", "versionscount"}
    return changed | resource.always_changed


def _document_changed(stored: Entity | None, private: dict[str, Any], resource: ResourceDraft) -> set[str]:
    """The name of a changed document: always `<RESOURCE>`, whichever member the request used (EV-37)."""
    is_same = stored is None or stored.document == private.get("document")
    return set() if is_same else {resource.type.singular}


def _differing_names(before: Attributes | None, after: Attributes) -> set[str]:
    if not before:
        return {name for name, value in after.items() if value is not None}
    return {name for name in before.keys() | after.keys() if not is_equal(before.get(name), after.get(name))}


def _deprecation_changes(before: Attributes, after: Attributes) -> tuple[str, ...] | None:
    old, new = before.get("deprecated"), after.get("deprecated")
    return None if is_equal(old, new) else _sort_names(_differing_names(old, new or {}))


def _sort_names(names: set[str]) -> tuple[str, ...]:
    """The names sorted: plain names first, then those of meta (EV-46)."""
    return tuple(sorted(names, key=lambda name: (name.startswith("meta."), name)))
