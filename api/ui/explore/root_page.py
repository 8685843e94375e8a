"""The page "Explore": the Group types, and the attributes of the registry (UI-41)."""

from __future__ import annotations

from annals.api.http.response import Response
from annals.api.ui.explore.attribute_rows import attribute_rows, rows_region
from annals.api.ui.page_context import PageContext
from annals.api.ui.registry_model import read_model
from annals.api.ui.rights import may_write, restore_link


async def root_page(page: PageContext) -> Response:
    """The page."""
    registry = (await page.get("/")).json
    model = await read_model(page)
    place = model.place(())
    assert place is not None, "the registry is a place"
    group_types = [
        (plural, registry[f"{plural}count"], group_type.get("description", ""))
        for plural, group_type in model.group_types.items()
    ]
    hidden = {name for plural in model.group_types for name in (plural, f"{plural}url", f"{plural}count")}
    return await page.render(
        "explore/root.html",
        "Explore",
        group_types=group_types,
        attributes=rows_region(attribute_rows(registry, place.attributes, hidden)),
        restore=await restore_link(page, place),
        edit=page.link("edit/") if page.has_page("edit/") and await may_write(page, "/", "PATCH") else "",
    )
