"""What the caller of a page may change, so that pages leave out all other controls (UI-17)."""

from __future__ import annotations

from typing import Final

from annals.api.ui.page_context import PageContext
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors.problems import Problem

_DETAILS: Final = "$details"


async def create_link(page: PageContext, collection: ModelPlace) -> str:
    """The URL of the page that makes a member of a collection; empty for a caller who may not."""
    path = f"new{collection.xid}"
    return page.link(path) if page.has_page(path) and await may_write(page, collection.xid, "POST") else ""


async def may_write(page: PageContext, path: str, method: str) -> bool:
    """Whether the caller may use a method at a path of the API now; no page of the past writes."""
    if page.asof is not None or not page.caller.can_write(path.removesuffix(_DETAILS)):
        return False
    try:
        answer = await page.send("OPTIONS", path)
    except Problem:
        return False
    return method in (answer.header("allow") or "")
