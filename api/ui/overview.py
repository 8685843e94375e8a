"""The page "Overview": what the registry has, what changed last, and whether it is well (UI-40, UI-65)."""

from __future__ import annotations

from typing import Any, Final

from annals.api.http.response import Response
from annals.api.ui.page_context import PageContext

_RECENT: Final = 10


async def overview_page(page: PageContext) -> Response:
    """The page."""
    registry = (await page.get("/")).json
    model = (await page.get("/model")).json
    interactions = (await page.get("/-/interactions", {"order": "desc", "limit": str(_RECENT)})).json
    return await page.render(
        "overview.html",
        "Overview",
        groups=_group_counts(registry, model),
        interactions=interactions,
    )


def _group_counts(registry: dict[str, Any], model: dict[str, Any]) -> list[tuple[str, int]]:
    return [(plural, registry[f"{plural}count"]) for plural in model.get("groups", {})]
