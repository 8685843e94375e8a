"""Definitions imported through a legacy API from the registry that is their authority: only the importer writes them.

A legacy API has no read-only attribute, but an import is recognizable: it names a foreign authority, and its Version
has an absolute URI as its id (LEG-904). The caller who imports a new definition represents its authority from then on.
No other caller writes it (LEG-909), until an administrator does; then the definition belongs to this registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.domain.access.roles import ANONYMOUS, Role
from annals.domain.compat.legacy_apis import FACADE, legacy_api_of, without_members
from annals.domain.compat.request_extras import LegacyWrite
from annals.domain.compat.uris import is_absolute, normalize_uri
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.decisions.world import Context, World
from annals.domain.errors.problems import Problem, Readonly
from annals.domain.registry.events import EntityEvent, EntityRefreshed
from annals.domain.values import xid as xids

#: The legacy APIs' member of an imported definition: the name of the caller who imported it.
IMPORTER: Final = "importer"


def new_importer(facade: LegacyWrite, context: Context) -> str | None:
    """The caller who imports a new definition.

    None if it is not an import, if callers are anonymous, or if a link writes, because a link protects its own copies.
    """
    if facade.authority is None or facade.id is None or not is_absolute(facade.id):
        return None
    if normalize_uri(facade.authority).rstrip("/") == normalize_uri(facade.base).rstrip("/"):
        return None
    return None if context.caller.link or context.caller.name == ANONYMOUS.name else context.caller.name


def remove_importers(changes: ChangeSet) -> None:
    """Removes the importers of definitions that an administrator writes."""
    context = changes.context
    if context.caller.link or context.role is not Role.ADMIN:
        return
    for resource in changes.resources.values():
        if resource.facade.get(IMPORTER, context.caller.name) != context.caller.name and _is_written(resource):
            resource.facade = without_members(resource.facade, IMPORTER)


def check_imports(events: Sequence[EntityEvent], world: World, context: Context) -> None:
    """Raises: Readonly for a write to a definition that another caller imported."""
    if context.caller.link or context.role is Role.ADMIN:
        return
    checked_xid = ""
    for event in reversed(events):  # the written entity follows its ancestors
        segments = xids.segments(event.xid)
        if len(segments) < 4 or isinstance(event, EntityRefreshed):
            continue
        xid = xids.join(*segments[:4])
        if xid == checked_xid or legacy_api_of(xid) is None:
            continue
        resource, checked_xid = world.get(xid), xid
        facade = resource.private.get(FACADE, {}) if resource is not None else {}
        if facade.get(IMPORTER, context.caller.name) != context.caller.name:
            raise _readonly_problem(xid, facade[IMPORTER], facade.get("authority", ""))


def _readonly_problem(xid: str, importer: str, authority: str) -> Problem:
    detail = f"it is a copy, which {importer} writes from {authority}; an administrator can make it this registry's own"
    return Readonly(xid, detail=detail, extensions={"authority": authority})


def _is_written(resource: ResourceDraft) -> bool:
    return not resource.is_deleted and (
        resource.meta.is_updated or any(version.is_updated for version in resource.versions.values())
    )
