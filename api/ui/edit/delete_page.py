"""The page that deletes an entity, which says first what goes with it (UI-45, UI-85)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.explore.entity_view import find_place
from annals.api.ui.forms import read_form
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.api.ui.registry_model import ModelPlace
from annals.api.ui.rights import require_writer
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotFound, Problem

_MAX_LISTED: Final = 50
_MAX_REFERENCES: Final = "1000"
_SUBSCRIPTIONS: Final = "/subscriptions/"
_CONFIRM: Final = "confirm"
_EPOCH: Final = "epoch"


class Deletion(NamedTuple):
    """What a deletion takes. place: what the page is about. xid: of the topmost entity that goes, which is the Resource
    if the place is its only Version. counts: by type, of what goes beside the place. epoch: None for an xref that leads
    nowhere.
    """

    place: ModelPlace
    xid: str
    counts: Mapping[str, int]
    epoch: int | None

    @property
    def needs_id(self) -> bool:
        """Whether more goes than the entity and the one Version that a Resource always has."""
        return sum(self.counts.values()) > (1 if self.place.is_resource else 0)


async def delete_page(page: PageContext) -> Response:
    """The page. Raises: NotFound, Forbidden."""
    _, place = await find_place(page, page.path_params["xid"])
    if place.is_collection or not place.segments:
        raise NotFound(place.xid)
    require_writer(page, place)
    deletion = await _read_deletion(page, place)
    if page.request.method != "POST":
        return await _show(page, deletion)
    form = await read_form(page.request, page.receive)
    id = place.segments[-1]
    if deletion.needs_id and form.get(_CONFIRM, "").strip() != id:
        return await _show(page, deletion, error=f"Type {id} to confirm.", status=400)
    try:
        answer = await page.send("DELETE", place.xid, {"epoch": form.get(_EPOCH) or None})
    except Forbidden:
        raise
    except Problem as problem:
        return await _show(page, deletion, alert=shown_problem(problem, page.asked), status=problem.status)
    return page.saved("explore" + deletion.xid.rpartition("/")[0], answer)


async def _read_deletion(page: PageContext, place: ModelPlace) -> Deletion:
    """What a deletion takes. Raises: NotFound."""
    path = f"{place.xid}/meta" if place.is_resource else place.api_path  # a deletion names the epoch of the meta
    epoch = (await page.get(path)).json.get(_EPOCH)
    if place.is_version:
        versions = f"/{'/'.join(place.segments[:5])}"
        if len((await page.get(versions, {"limit": "2"})).json) == 1:
            type = f"{place.segments[0]}.{place.segments[2]}"
            return Deletion(place, versions.removesuffix("/versions"), {type: 1}, epoch)
    counts = (await page.get(f"/-/counts{place.xid}")).json["counts"]
    return Deletion(place, place.xid, {each["type"]: each["count"] for each in counts}, epoch)


async def _show(
    page: PageContext, deletion: Deletion, *, error: str = "", alert: ShownProblem | None = None, status: int = 200
) -> Response:
    place = deletion.place
    return await page.render(
        "edit/delete.html",
        f"Delete {place.segments[-1]}",
        status,
        counts=deletion.counts,
        first=await _first_ones(page, place) if deletion.counts else [],
        total=sum(deletion.counts.values()),
        referrers=await _referrers(page, deletion.xid),
        needs_id=deletion.needs_id,
        epoch=deletion.epoch,
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


async def _referrers(page: PageContext, xid: str) -> _Referrers:
    query = {"direction": "in", "below": "", "limit": _MAX_REFERENCES}
    found = (await page.get(f"/-/references{xid}", query)).json["references"]
    sources = list(dict.fromkeys(each["from"] for each in found))
    subscriptions = [source for source in sources if source.startswith(_SUBSCRIPTIONS)]
    inside = (xid, *subscriptions)
    dangling = [source for source in sources if source not in inside and not source.startswith(f"{xid}/")]
    return _Referrers(
        [(source, page.link(f"explore{source}")) for source in dangling[:_MAX_LISTED]],
        [(source, page.link(source.removeprefix("/"))) for source in subscriptions[:_MAX_LISTED]],
    )
