"""Write access to copies: only the registry of origin writes them, as long as their link exists.

The copies of a link that follows a log are all entities in its scope. A copy over the standard API or a legacy API has
the link's id in the private members of its Group or Resource. For the registry's own attributes the registry has it,
and for the data capabilities the capabilities have it. Rule LEG-909.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from annals.domain.decisions.capabilities import has_same_data
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import GroupDraft
from annals.domain.decisions.world import Context, World
from annals.domain.errors.http_errors import NotReceiving
from annals.domain.errors.problems import Problem, Readonly
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed
from annals.domain.replication import LINK
from annals.domain.replication.link import COLLECTION, LOG, Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import is_equal

#: The attributes of a Group that differ when an entity below it is added or removed.
_TOUCH_NAMES: Final = frozenset(("epoch", "modifiedat"))


def check_copies(events: Sequence[EntityEvent], world: World, context: Context) -> None:
    """Checks that only the link of a copy writes it, and only while that link is active.

    Raises: Readonly for a copy of another link, NotReceiving if the writing link has ended.
    """
    if context.caller.link and not any(
        link.id == context.caller.link and link.is_enabled and not link.is_promoted for link in world.links
    ):
        raise NotReceiving(f"{COLLECTION}/{context.caller.link}")
    links = [
        link for link in world.links if link.is_inbound and not link.is_promoted and link.id != context.caller.link
    ]
    if links:
        for event in reversed(events):  # the written entity follows its ancestors
            for link in links:
                if _is_owner(link, event, world) or (
                    not context.caller.link and _has_other_definitions(link, event, world)
                ):
                    raise readonly_copy(link, _topmost_xid(event, events, link, world))


def release_copies(changes: ChangeSet) -> None:
    """Makes copies that anybody else writes entities of this registry, which no later link takes for its own.

    `check_copies` refuses such writes as long as the link of a copy delivers it.
    """
    if changes.context.caller.link:
        return
    for group in changes.groups.values():
        if group.link and group.is_written and _differ(group.before or {}, group.attributes, _server_set_names(group)):
            group.link = None
    for resource in changes.resources.values():
        versions = resource.versions.values()
        if resource.link and (
            resource.meta.is_written or any(each.is_written or each.deletion_reason == "deleted" for each in versions)
        ):
            resource.link = None
    image, current = changes.root_after_images.get(xids.CAPABILITIES), changes.world.get(xids.CAPABILITIES)
    if image is not None and current is not None and not has_same_data(current.attributes, image.attributes):
        changes.root_after_images[xids.CAPABILITIES] = image._replace(private={})


def _server_set_names(group: GroupDraft) -> Set[str]:
    """The names of what is stored of a Group that no client sets, so that a draft does not have them."""
    stored = group.before or {}
    return _TOUCH_NAMES | (stored.keys() - group.previous_level.settable_values(stored).keys())


def _topmost_xid(event: EntityEvent, events: Sequence[EntityEvent], link: Link, world: World) -> str:
    """The xid of the topmost entity of a write: of entities that are deleted together, the one above all others."""
    deletions = {deletion.xid: deletion for deletion in events if isinstance(deletion, EntityDeleted)}
    while (parent := deletions.get(xids.parent(event.xid) or "")) is not None and _is_owner(link, parent, world):
        event = parent
    return event.xid


def readonly_copy(link: Link, xid: str) -> Problem:
    """The problem of a write to a copy."""
    authority = authority_url(link, xid)
    detail = f"it is a copy, which the link {link.id} maintains; write it at {authority}"
    return Readonly(xid, detail=detail, extensions={"authority": authority})


def authority_url(link: Link, xid: str) -> str:
    """The URL at which a copy can be written; that of the whole registry if the copy may have another name there."""
    return f"{link.url}{xid if link.dialect == LOG else ''}"


def link_of_copy(xid: str, links: Sequence[Link], private: Mapping[str, Any]) -> Link | None:
    """The link that still delivers an entity. private: the entity's own private members."""
    inbound_links = (link for link in links if link.is_inbound and not link.is_promoted)
    return next((link for link in inbound_links if link.has_copy(xid, private.get(LINK))), None)


def _is_owner(link: Link, event: EntityEvent, world: World) -> bool:
    if link.follows_log:
        return link.has_copy(event.xid, None)
    segments = xids.segments(event.xid)
    owner = world.get(xids.join(*segments[: 2 if len(segments) == 2 else 4]) if segments else xids.REGISTRY)
    if owner is None or not link.has_copy(owner.xid, owner.private.get(LINK)):
        return False
    if event.xid == xids.CAPABILITIES:
        return not has_same_data(owner.attributes, event.attributes)
    return len(segments) > 2 or _has_own_changes(owner, event)


def _has_own_changes(group: Entity, event: EntityEvent) -> bool:
    """Whether own attributes of a Group or the registry differ.

    Adding an entity below a copy does not write the copy.
    """
    if isinstance(event, EntityCreated | EntityDeleted):
        return True
    return _differ(
        group.attributes,
        event.attributes,
        _TOUCH_NAMES.union(name for name in group.attributes if name.endswith("count")),
    )


def _differ(stored: Mapping[str, Any], written: Mapping[str, Any], ignored_names: Set[str]) -> bool:
    """Whether other attributes than some differ."""
    names = (stored.keys() | written.keys()) - ignored_names
    return any(not is_equal(stored.get(name), written.get(name)) for name in names)


def _has_other_definitions(link: Link, event: EntityEvent, world: World) -> bool:
    """Whether another model defines the Groups of a link differently.

    A link may change the model: if two links deliver Groups of one type, their registries agree on it, or one of them
    leads.
    """
    if not link.follows_log or event.xid != xids.MODEL or isinstance(event, EntityRefreshed):
        return False
    current_model = world.get(xids.MODEL)
    old_groups, new_groups = (
        _group_definitions(current_model.attributes if current_model else {}),
        _group_definitions(event.attributes),
    )
    return any(
        old_groups[plural] != new_groups.get(plural) for plural in old_groups if link.scope.may_have_groups_of(plural)
    )


def _group_definitions(model: Mapping[str, Any]) -> Mapping[str, Any]:
    group_definitions: Mapping[str, Any] = (model.get("model") or {}).get("groups") or {}
    return group_definitions
