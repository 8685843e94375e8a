"""The page "Timeline": interactions, or the revisions of one entity, by caller, id and time (UI-48, UI-95, UI-96)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.history.revision_rows import revision_row
from annals.api.ui.local_times import field_time, moment_of_field
from annals.api.ui.log_pages import LogPage, read_log_page
from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext, url_path
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import BadRequest, NotFound

_INTERACTIONS: Final = "/-/interactions"
_FILTERS: Final = ("path", "caller", "id", "from", "until")
#: The number of entities that a row names.
_XIDS: Final = 3


class InteractionRow(NamedTuple):
    """One interaction. xids: of its first entities."""

    time: str
    caller: str
    command: str
    entities: int
    xids: list[str]
    id: str


class Download(NamedTuple):
    """A link to all that the filters select, in a format."""

    format: str
    url: str
    file: str


async def timeline_page(page: PageContext) -> Response:
    """The page. Filters that the API refuses leave the list empty and their texts in the fields. Raises: Forbidden."""
    filters = {name: page.param(name).strip() for name in _FILTERS}
    path, query = _api_path(filters["path"]), await _query(page, filters)
    found: LogPage | None = None
    alert: ShownProblem | None = None
    status = 200
    try:
        found = await read_log_page(page, path, query if path != _INTERACTIONS else query | {"xids": str(_XIDS)}, _end)
    except Forbidden:
        raise
    except (BadRequest, NotFound) as problem:
        alert, status = shown_problem(problem, page.asked), problem.status
    items = found.items if found else []
    revisions = [revision_row(page, each) for each in items] if path != _INTERACTIONS else []
    return await page.render(
        "history/timeline.html",
        "Timeline",
        status,
        alert=alert,
        filters=filters,
        field_times={name: field_time(moment_of_field(filters[name])) for name in ("from", "until")},
        is_filtered=any(filters.values()),
        interactions=[_interaction_row(each) for each in items] if path == _INTERACTIONS else [],
        revisions=revisions,
        has_entities=len({row.xid.lower() for row in revisions}) > 1,
        pages=found.links if found else None,
        downloads=[_download(page, path, query, format) for format in ("csv", "ndjson")],
    )


def _api_path(path: str) -> str:
    """The path of the API that has what the page lists."""
    return f"/-/history/{path.strip('/')}".rstrip("/") if path else _INTERACTIONS


async def _query(page: PageContext, filters: Mapping[str, str]) -> dict[str, str | None]:
    query: dict[str, str | None] = {name: filters[name] or None for name in ("caller", "id")}
    query |= {name: moment_of_field(filters[name]) or None for name in ("from", "until")}
    if page.asof is not None:
        query["until"] = await _earlier(page, page.asof, query["until"])
    return query


async def _earlier(page: PageContext, asof: str, until: str | None) -> str:
    """The earlier one of two moments. Raises: BadRequest."""
    if until is None:
        return asof
    positions = [
        (await page.own_api.get(page.request, "/-/log/head", {"asof": moment})).json["position"]
        for moment in (asof, until)
    ]
    return str(min(positions))


def _end(item: Mapping[str, Any]) -> int:
    """The position at which the API goes on after an item: of a revision, or the last one of an interaction."""
    position: int = item.get("position", item["last"])
    return position


def _interaction_row(item: Mapping[str, Any]) -> InteractionRow:
    count = item["last"] - item["first"] + 1
    return InteractionRow(item["time"], item["caller"], item["command"], count, item["xids"], item["xregcorrelationid"])


def _download(page: PageContext, path: str, query: Mapping[str, str | None], format: str) -> Download:
    name = "revisions" if path != _INTERACTIONS else "interactions"
    url = page.api_url(f"{url_path(path)}?{query_text({**query, 'format': format})}")
    return Download(format.upper(), url, f"{name}.{format}")
