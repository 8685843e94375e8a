"""One entity as its page reads it from the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annals.api.ui.page_context import PageContext
from annals.api.ui.registry_model import ModelPlace, ModelView, read_model
from annals.domain.errors.problems import NotFound


@dataclass(frozen=True)
class EntityView:
    """attributes: as the API shows them, without documents and collections. meta: of a Resource; empty for others.

    xref: of the Resource that the entity is or belongs to; empty without one.
    """

    place: ModelPlace
    model: ModelView
    attributes: Mapping[str, Any]
    meta: Mapping[str, Any]
    xref: str = ""

    @property
    def id(self) -> str:
        """The id of the entity."""
        return self.place.segments[-1]

    @property
    def resource_xid(self) -> str:
        """The xid of the Resource that the entity is or belongs to."""
        return "/" + "/".join(self.place.segments[:4])

    @property
    def has_versions(self) -> bool:
        """Whether it is a Resource that shows Versions. One whose xref leads nowhere shows none."""
        return self.place.is_resource and "versionid" in self.attributes


async def find_place(page: PageContext, xid: str) -> tuple[ModelView, ModelPlace]:
    """The model, and what an xid without its first slash names. Raises: NotFound."""
    model = await read_model(page)
    place = model.place([segment for segment in xid.split("/") if segment])
    if place is None:
        page.raw_json = f"/{xid}"
        raise NotFound(f"/{xid}")
    page.raw_json = None  # what the page is about is read next
    return model, place


async def read_entity(page: PageContext, model: ModelView, place: ModelPlace) -> EntityView:
    """The entity at a place. Raises: NotFound."""
    attributes = (await page.get(place.api_path)).json
    meta = (await page.get(f"{place.xid}/meta")).json if place.is_resource else {}
    return EntityView(place, model, attributes, meta, meta.get("xref") or await read_xref(page, place))


async def read_xref(page: PageContext, place: ModelPlace) -> str:
    """The xref of the Resource that a Version, or a collection of Versions, belongs to; empty without one."""
    if not place.is_version:
        return ""
    meta = (await page.get(f"/{'/'.join(place.segments[:4])}/meta")).json
    return str(meta.get("xref", ""))
