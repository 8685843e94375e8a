"""The page that deletes an entity, which says first what goes with it (UI-45, UI-85)."""

from __future__ import annotations

from typing import Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.explore.entity_view import find_place
from annals.api.ui.forms import read_form
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotFound, Problem

_MAX_LISTED: Final = 50
_MAX_REFERENCES: Final = "1000"
_SUBSCRIPTIONS: Final = "/subscriptions/"
_CONFIRM: Final = "confirm"
_EPOCH: Final = "epoch"


async def delete_page(page: PageContext) -> Response:
    """The page. Raises: NotFound."""
    _, place = await find_place(page, page.path_params["xid"])
    if place.is_collection or not place.segments:
        raise NotFound(place.xid)
    epoch = await _read_epoch(page, place)
    counts = {each["type"]: each["count"] for each in (await page.get(f"/-/counts{place.xid}")).json["counts"]}
    if page.request.method != "POST":
        return await _show(page, place, counts, epoch)
    form = await read_form(page.request, page.receive)
    id = place.segments[-1]
    if _goes_with_others(place, counts) and form.get(_CONFIRM, "").strip() != id:
        return await _show(page, place, counts, epoch, error=f"Type {id} to confirm.", status=400)
    try:
        answer = await page.send("DELETE", place.xid, {"epoch": form.get(_EPOCH) or None})
    except Forbidden:
        raise
    except Problem as problem:
        alert = shown_problem(problem, page.asked)
        return await _show(page, place, counts, epoch, alert=alert, status=problem.status)
    return page.saved("explore/" + "/".join(place.segments[:-1]), answer)


async def _read_epoch(page: PageContext, place: ModelPlace) -> int:
    """The epoch that a deletion names: of a Resource, that of its meta. Raises: NotFound."""
    path = f"{place.xid}/meta" if place.is_resource else place.api_path
    epoch: int = (await page.get(path)).json[_EPOCH]
    return epoch


def _goes_with_others(place: ModelPlace, counts: dict[str, int]) -> bool:
    """Whether more goes than the entity and the one Version that a Resource always has."""
    return sum(counts.values()) > (1 if place.is_resource else 0)


async def _show(
    page: PageContext,
    place: ModelPlace,
    counts: dict[str, int],
    epoch: int,
    error: str = "",
    alert: ShownProblem | None = None,
    status: int = 200,
) -> Response:
    return await page.render(
        "edit/delete.html",
        f"Delete {place.segments[-1]}",
        status,
        place=place,
        counts=counts,
        first=await _first_ones(page, place),
        total=sum(counts.values()),
        referrers=await _referrers(page, place),
        needs_id=_goes_with_others(place, counts),
        epoch=epoch,
        error=error,
        alert=alert,
        cancel=page.link(f"explore{place.xid}"),
    )


async def _first_ones(page: PageContext, place: ModelPlace) -> list[str]:
    """The first entities below, in the order of the tree."""
    found: list[str] = []
    for name in place.collections or (("versions",) if place.is_resource else ()):
        path = f"{place.xid}/{name}"
        members = (await page.get(path, {"limit": str(_MAX_LISTED)})).json
        found += (f"{path}/{id}" for id in members)
    return found[:_MAX_LISTED]


class _Referrers(NamedTuple):
    """What refers to an entity or to something below it. dangling: entities whose references will lead to nothing.

    subscriptions: that get its events. Each has its xid and the URL of its page.
    """

    dangling: list[tuple[str, str]]
    subscriptions: list[tuple[str, str]]


async def _referrers(page: PageContext, place: ModelPlace) -> _Referrers:
    query = {"direction": "in", "below": "", "limit": _MAX_REFERENCES}
    found = (await page.get(f"/-/references{place.xid}", query)).json["references"]
    sources = list(dict.fromkeys(each["from"] for each in found))
    subscriptions = [source for source in sources if source.startswith(_SUBSCRIPTIONS)]
    inside = (place.xid, *subscriptions)
    dangling = [source for source in sources if source not in inside and not source.startswith(f"{place.xid}/")]
    return _Referrers(
        [(source, page.link(f"explore{source}")) for source in dangling[:_MAX_LISTED]],
        [(source, page.link(source.removeprefix("/"))) for source in subscriptions[:_MAX_LISTED]],
    )
