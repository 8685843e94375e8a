"""The page of the settings in force, which shows no secrets (UI-61, UI-122)."""

from __future__ import annotations

from annals.api.http.response import Response
from annals.api.ui.page_context import PageContext


async def settings_page(page: PageContext) -> Response:
    """The page. Raises: Forbidden."""
    return await page.render("settings.html", "Settings", rows=(await page.get("/-/settings")).json)
