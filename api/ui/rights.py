"""What the caller of a page may change, so that pages leave out all other controls (UI-17)."""

from __future__ import annotations

from typing import Final

from annals.api.ui.page_context import PageContext
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import Problem

_DETAILS: Final = "$details"


def require_writer(page: PageContext, place: ModelPlace) -> None:
    """Refuses a form before somebody types something into it. Raises: Forbidden for a caller who may not write there.

    place: of the entity, or of the collection that gets a new one. A caller may have a role for Groups that do not
    exist yet, so the collections of Groups are for all who may write somewhere.
    """
    is_for_groups = place.is_group and place.is_collection
    if not (page.caller.writes_somewhere if is_for_groups else page.caller.can_write(place.xid)):
        raise Forbidden(caller=page.caller.name)


async def create_link(page: PageContext, collection: ModelPlace) -> str:
    """The URL of the page that makes a member of a collection; empty for a caller who may not."""
    path = f"new{collection.xid}"
    return page.link(path) if page.has_page(path) and await may_write(page, collection.xid, "POST") else ""


async def restore_link(page: PageContext, place: ModelPlace) -> str:
    """The URL of the page that restores an entity as of the moment of this one; empty if there is no such page.

    No page of the present has one, nor that of a caller who may not write there.
    """
    path = f"restore{place.xid}"
    is_possible = page.asof is not None and page.has_page(path) and await _allows(page, place.api_path, "PATCH")
    return page.link(path) if is_possible else ""


async def may_write(page: PageContext, path: str, method: str) -> bool:
    """Whether the caller may use a method at a path of the API now; no page of the past writes."""
    return page.asof is None and await _allows(page, path, method)


async def _allows(page: PageContext, path: str, method: str) -> bool:
    if not page.caller.can_write(path.removesuffix(_DETAILS)):
        return False
    try:
        answer = await page.send("OPTIONS", path)
    except Problem:
        return False
    return method in (answer.header("allow") or "")
