"""The two sides of a comparison: which Version, at which moment (UI-90)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals.api.ui.explore.entity_view import find_place
from annals.api.ui.page_context import MAX_ROWS, PageContext
from annals.api.ui.registry_model import VERSIONS, ModelPlace
from annals.domain.errors.problems import BadRequest, Problem

LEFT: Final = "left"
RIGHT: Final = "right"


@dataclass(frozen=True)
class PageSide:
    """One side. versionid: empty where the place has no Versions. moment: as the field has it; empty for now.

    asof: the moment to read; None for now. position, time: of the moment; None and empty for now.
    """

    place: ModelPlace
    versionid: str
    moment: str
    asof: str | None
    position: int | None
    time: str

    @property
    def xid(self) -> str:
        """The xid of the Version, or of the place."""
        return f"{self.place.xid}/{VERSIONS}/{self.versionid}" if self.versionid else self.place.xid

    @property
    def subject(self) -> str:
        """What it is, for sentences."""
        return f"Version {self.versionid}" if self.versionid else self.place.segments[-1]

    @property
    def document_path(self) -> str:
        """Where the API has the document."""
        return self.xid

    @property
    def details_path(self) -> str:
        """Where the API has the attributes."""
        return f"{self.xid}$details" if self.place.has_document else self.xid


@dataclass(frozen=True)
class PageSides:
    """Both sides. versionids: what the fields offer; empty where the place has no Versions."""

    place: ModelPlace
    left: PageSide
    right: PageSide
    versionids: list[str]

    @property
    def are_versions(self) -> bool:
        """Whether the sides are two Versions, rather than one entity at two moments."""
        return self.left.versionid != self.right.versionid

    @property
    def query(self) -> Mapping[str, str | None]:
        """The parameters of `/-/compare`."""
        return {
            "left": self.left.versionid or None,
            "right": self.right.versionid or None,
            "leftasof": self.left.asof,
            "rightasof": self.right.asof,
        }


async def read_sides(page: PageContext) -> PageSides:
    """The sides that the page is asked for. Raises: NotFound, BadRequest for a moment that does not exist."""
    _, place = await find_place(page, page.path_params.get("xid", ""))
    moments = {side: page.param(f"{side}asof") for side in (LEFT, RIGHT)}
    asof = {side: moments[side] or page.asof for side in (LEFT, RIGHT)}
    heads = {side: await _head(page, asof[side]) for side in (LEFT, RIGHT)}
    chosen, offered = dict.fromkeys((LEFT, RIGHT), ""), list[str]()
    if place.is_resource and not place.is_collection:
        chosen = await _chosen_versions(page, place, asof, names_moment=any(moments.values()))
        offered = await _offered_versions(page, place, chosen)
    left, right = (
        PageSide(
            place,
            chosen[side],
            moments[side],
            asof[side],
            heads[side]["position"] if asof[side] else None,
            heads[side].get("time", "") if asof[side] else "",
        )
        for side in (LEFT, RIGHT)
    )
    return PageSides(place, left, right, offered)


async def _head(page: PageContext, asof: str | None) -> Mapping[str, Any]:
    """Position and time of a moment; empty for now."""
    if asof is None:
        return {}
    found: Mapping[str, Any] = (await page.get("/-/log/head", {"asof": asof}, with_asof=False)).json
    return found


async def _chosen_versions(
    page: PageContext, place: ModelPlace, asof: Mapping[str, str | None], *, names_moment: bool
) -> dict[str, str]:
    """The Versions of the sides, by the defaults of `/-/compare`."""
    chosen = {side: page.param(side) for side in (LEFT, RIGHT)}
    right = await _version(page, place, chosen[RIGHT], asof[RIGHT])
    if not chosen[LEFT]:
        other = await _version(page, place, "", asof[LEFT]) if names_moment else right
        chosen[LEFT] = other["versionid"] if names_moment else right["ancestorid"]
    return {LEFT: chosen[LEFT], RIGHT: right["versionid"]}


async def _version(page: PageContext, place: ModelPlace, versionid: str, asof: str | None) -> Mapping[str, Any]:
    """The attributes of a Version; of the default Version without an id."""
    details = "$details" if place.has_document else ""
    path = f"{place.xid}/{VERSIONS}/{versionid}{details}" if versionid else place.api_path
    found: Mapping[str, Any] = (await page.get(path, {"asof": asof}, with_asof=False)).json
    if "versionid" not in found:
        raise BadRequest(error_detail=f"{place.xid} shows no Versions, because its xref has no target")
    return found


async def _offered_versions(page: PageContext, place: ModelPlace, chosen: Mapping[str, str]) -> list[str]:
    """The ids of the Versions that are there, and of those that are compared."""
    try:
        found = (await page.get(f"{place.xid}/{VERSIONS}", {"limit": str(MAX_ROWS)})).json
    except Problem:  # deleted since one of the moments
        found = {}
    return [*found, *(id for id in dict.fromkeys(chosen.values()) if id not in found)]
