"""Restores the values that only the legacy APIs know.

A definition that is deleted and created again has several lifetimes. A Version that is restored into its own lifetime
gets its number back, because it is the same Version. In a later lifetime another Version may have that number.
"""

from __future__ import annotations

from annals.domain.compat.legacy_apis import FACADE, legacy_api_of, version_number, without_members
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft, VersionDraft
from annals.domain.decisions.compat.version_numbers import LIFETIME_MEMBERS
from annals.domain.registry.entities import Entity

#: The names under which a Version is published permanently; all other members are its content.
_PUBLISHED_NAMES = ("number", "id", "uri")


def restore_group(group: GroupDraft, past_entity: Entity) -> bool:
    """Sets a Group's legacy values to the past ones; returns whether they differ from the current ones."""
    previous, group.facade = group.facade, past_entity.private.get(FACADE, {})
    return previous != group.facade


def restore_definition(resource: ResourceDraft, past_entity: Entity) -> bool:
    """The same for a definition, except for the members that stay those of its current lifetime."""
    current_facade = past_entity.private.get(FACADE, {}) if resource.is_new else resource.facade
    current_members = {name: current_facade[name] for name in LIFETIME_MEMBERS if name in current_facade}
    previous = resource.facade
    resource.facade = {**without_members(past_entity.private.get(FACADE, {}), *LIFETIME_MEMBERS), **current_members}
    return previous != resource.facade


def is_same_version(version: VersionDraft, past_entity: Entity) -> bool:
    """Whether a Version has the same content as in the past."""
    return without_members(version.facade, *_PUBLISHED_NAMES) == without_members(
        past_entity.private.get(FACADE, {}), *_PUBLISHED_NAMES
    )


def restore_version(resource: ResourceDraft, version: VersionDraft, past_entity: Entity, definition: Entity) -> None:
    """Sets a Version's past content, and the names of a new Version. definition: the past Resource."""
    facade = past_entity.private.get(FACADE, {})
    names = facade if version.is_new else version.facade
    version.facade = {
        **without_members(facade, *_PUBLISHED_NAMES),
        **{name: names[name] for name in _PUBLISHED_NAMES[1:] if name in names},
    }
    if not version.is_new and "number" in names:
        version.facade["number"] = names["number"]
    if resource.entity is None or resource.entity.born == definition.born:
        version.assigned_number = version_number(past_entity.id, past_entity.private) or None


def forget_later_versions(changes: ChangeSet, xid: str, position: int) -> None:
    """Forgets the retained Version of a stream if it was created after a position."""
    if legacy_api_of(xid) is not None:
        changes.forget_publications(
            publication
            for publication in changes.world.publications.retained_versions(xid)
            if publication.born > position
        )
