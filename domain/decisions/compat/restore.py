"""Restores the values that only the legacy APIs know.

A definition that is deleted and created again has several lifetimes. A Version that is restored into its own lifetime
gets its number back, because it is the same Version. In a later lifetime another Version may have that number.
"""

from __future__ import annotations

from domain.compat.legacy_apis import FACADE, legacy_api_of, version_number, without_members
from domain.decisions.changes.change_set import ChangeSet
from domain.decisions.changes.drafts import GroupDraft, ResourceDraft, VersionDraft
from domain.decisions.compat.version_numbers import USED
from domain.registry.entities import Entity

#: The names under which a Version is published permanently; all other members are its content.
_NAMES = ("number", "id", "uri")


def restore_group(group: GroupDraft, then: Entity) -> bool:
    """Sets a Group's legacy values to the past ones; returns whether they differ from the current ones."""
    before, group.facade = group.facade, then.private.get(FACADE, {})
    return before != group.facade


def restore_definition(resource: ResourceDraft, then: Entity) -> bool:
    """The same for a definition, except for the used numbers, which stay those of its current lifetime."""
    life = then.private.get(FACADE, {}) if resource.is_new else resource.facade
    gone = {USED: life[USED]} if USED in life else {}
    before = resource.facade
    resource.facade = {**without_members(then.private.get(FACADE, {}), USED), **gone}
    return before != resource.facade


def is_same_version(version: VersionDraft, then: Entity) -> bool:
    """Whether a Version has the same content as in the past."""
    return without_members(version.facade, *_NAMES) == without_members(then.private.get(FACADE, {}), *_NAMES)


def restore_version(resource: ResourceDraft, version: VersionDraft, then: Entity, definition: Entity) -> None:
    """Sets a Version's past content, and the names of a new Version. definition: the past Resource."""
    facade = then.private.get(FACADE, {})
    names = facade if version.is_new else version.facade
    version.facade = {**without_members(facade, *_NAMES), **{name: names[name] for name in _NAMES[1:] if name in names}}
    if not version.is_new and "number" in names:
        version.facade["number"] = names["number"]
    if resource.entity is None or resource.entity.born == definition.born:
        version.assigned_number = version_number(then.id, then.private) or None


def forget_later_versions(changes: ChangeSet, xid: str, position: int) -> None:
    """Forgets the retained Version of a stream if it was created after a position."""
    if legacy_api_of(xid) is not None:
        changes.forget_publications(
            kept for kept in changes.world.publications.retained_versions(xid) if kept.born > position
        )
