"""The page of a Group, a Resource or a Version: its regions, and links to what can be done with it (UI-43)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.explore.collection_page import collection_page
from annals.api.ui.explore.entity_view import EntityView, find_place, read_entity
from annals.api.ui.explore.regions import REGIONS
from annals.api.ui.page_context import PageContext
from annals.api.ui.rights import may_write, restore_link
from annals.domain.errors.problems import NotFound

_ENDPOINTS: Final = "endpoints"


class ShownRegion(NamedTuple):
    """A region with its heading, its template, and the values that this shows."""

    name: str
    template: str
    values: Mapping[str, Any]


async def explore_page(page: PageContext) -> Response:
    """The page of what the path names: a collection or an entity. Raises: NotFound."""
    model, place = await find_place(page, page.path_params["xid"])
    if place.is_collection:
        return await collection_page(page, place)
    if not place.segments:  # the registry has a page of its own
        raise NotFound("/")
    entity = await read_entity(page, model, place)
    if (chosen := page.params.get("version")) is not None and len(chosen) == 2 and page.has_page("compare/x"):
        return page.redirect(f"compare{place.xid}", left=chosen[0], right=chosen[1])
    applying = [region for region in REGIONS if region.applies(entity)]
    read_values = await asyncio.gather(*(region.read(page, entity) for region in applying))
    regions = [
        ShownRegion(region.name, region.template, values)
        for region, values in zip(applying, read_values, strict=True)
        if values is not None
    ]
    return await page.render(
        "explore/entity.html",
        entity.id,
        entity=entity,
        views=_views(page, entity),
        actions=await _actions(page, entity),
        regions=regions,
        has_wrong_choice=chosen is not None,
    )


def _views(page: PageContext, entity: EntityView) -> list[tuple[str, str, bool]]:
    """The links of the navigation "Views": text, URL, whether it is this page."""
    xid = entity.place.xid
    links = [("Details", page.path, {}, True), ("History", "timeline", {"path": xid}, False)]
    if entity.has_versions or not entity.place.is_resource:
        links.append(("Compare", f"compare{xid}", {}, False))
    if entity.place.plural == _ENDPOINTS and entity.place.is_group:
        links.append(("Graph", f"graph{xid}", {}, False))
    return [(text, page.link(path, **query), here) for text, path, query, here in links if page.has_page(path)]


async def _actions(page: PageContext, entity: EntityView) -> list[tuple[str, str]]:
    """The links to pages that change the entity, for a caller who may."""
    if entity.xref and entity.place.is_version:
        return []
    allowed = [
        (text, page.link(target))
        for text, target, api_path, method in _changes(entity)
        if page.has_page(target) and await may_write(page, api_path, method)
    ]
    restore = await restore_link(page, entity.place)
    return [*allowed, ("Restore", restore)] if restore else allowed


def _changes(entity: EntityView) -> list[tuple[str, str, str, str]]:
    """What can be done with an entity now: text, path of the page, and the request to the API that it leads to.

    A Resource with an xref shows the values of its target, which are changed there.
    """
    xid, path = entity.place.xid, entity.place.api_path
    delete = ("Delete", f"delete{xid}", xid, "DELETE")
    if entity.xref:
        details = "$details" if entity.place.has_document else ""
        edit_target = ("Edit target", f"edit{entity.xref}", entity.xref + details, "PATCH")
        return [edit_target, delete] if entity.has_versions else [delete]
    links = [("Edit", f"edit{xid}", path, "PATCH"), delete]
    if entity.place.is_resource and entity.place.definition.get("maxversions") != 1:
        links.insert(1, ("New version", f"new{xid}/versions", f"{xid}/versions", "POST"))
    return links
