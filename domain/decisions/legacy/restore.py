"""What only the older APIs know, when a past state comes back.

A Version that comes back into the life that its definition had then has its number again, since it is the same one; a
definition of a later life may have given that number to another.
"""

from __future__ import annotations

from domain.compat.legacy_apis import FACADE, legacy_api_of, version_number
from domain.decisions.changes.change_set import ChangeSet
from domain.decisions.changes.drafts import GroupDraft, ResourceDraft, VersionDraft
from domain.decisions.legacy.version_numbers import USED
from domain.registry.entities import Attributes, Entity

#: What a Version is published under for good; all else is what it holds.
_NAMES = ("number", "id", "uri")


def restore_group(group: GroupDraft, then: Entity) -> bool:
    """Whether what a Group had then differs from what it has, which it has now."""
    before, group.facade = group.facade, then.private.get(FACADE, {})
    return before != group.facade


def restore_definition(resource: ResourceDraft, then: Entity) -> bool:
    """The same of a definition, less the numbers that are gone in the life that it has."""
    life = then.private.get(FACADE, {}) if resource.new else resource.facade
    gone = {USED: life[USED]} if USED in life else {}
    before = resource.facade
    resource.facade = {**_without(then.private.get(FACADE, {}), USED), **gone}
    return before != resource.facade


def is_same_version(version: VersionDraft, then: Entity) -> bool:
    """Whether a Version holds what it held then."""
    return _without(version.facade, *_NAMES) == _without(then.private.get(FACADE, {}), *_NAMES)


def restore_version(resource: ResourceDraft, version: VersionDraft, then: Entity, definition: Entity) -> None:
    """Gives a Version what it held then, and a new one its names. definition: the Resource of then."""
    facade = then.private.get(FACADE, {})
    names = facade if version.new else version.facade
    version.facade = {**_without(facade, *_NAMES), **{name: names[name] for name in _NAMES[1:] if name in names}}
    if not version.new and "number" in names:
        version.facade["number"] = names["number"]
    if resource.entity is None or resource.entity.born == definition.born:
        version.assigned = version_number(then.id, then.private) or None


def forget_later_versions(changes: ChangeSet, xid: str, position: int) -> None:
    """Forgets the kept Version of a stream that was not there yet at a position."""
    if legacy_api_of(xid) is not None:
        changes.forget(kept for kept in changes.world.published.kept(xid) if kept.born > position)


def _without(facade: Attributes, *names: str) -> Attributes:
    return {name: value for name, value in facade.items() if name not in names}
