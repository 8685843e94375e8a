"""The page "Findings": what breaks rules beyond the model, by path, level and rule (UI-52)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext, url_path
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.problems import BadRequest, NotFound
from annals.domain.messaging.findings import L2, L3

_FILTERS: Final = ("path", "level", "rule")
_LEVELS: Final = (L2, L3)


class FindingRow(NamedTuple):
    """One finding. url: of the page of its entity. path: of the attribute within it."""

    level: str
    rule: str
    xid: str
    url: str
    path: str
    text: str


async def findings_page(page: PageContext) -> Response:
    """The page. Filters that the API refuses leave the list empty and their texts in the fields."""
    filters = {name: page.param(name).strip() for name in _FILTERS}
    path = f"/-/findings/{filters['path'].strip('/')}".rstrip("/")
    query = {name: filters[name] or None for name in ("level", "rule")}
    alert: ShownProblem | None = None
    status, findings, after = 200, list[Mapping[str, Any]](), None
    try:
        answer = await page.get(path, {**query, "limit": str(page.limit), "after": page.param("after") or None})
        findings, more = answer.json["findings"], answer.link("next")
        after = more.query["after"] if more else None
    except (BadRequest, NotFound) as problem:
        alert, status = shown_problem(problem, page.asked), problem.status
    given = {name: page.param(name) or None for name in (*_FILTERS, "limit")}
    return await page.render(
        "findings.html",
        "Findings",
        status,
        alert=alert,
        filters=filters,
        levels=_LEVELS,
        rows=[_row(page, each) for each in findings],
        first=page.link("findings", **given) if page.param("after") else None,
        next=page.link("findings", **given, after=after) if after else None,
        downloads=[
            (format.upper(), page.api_url(f"{url_path(path)}?{_download_query(page, query, format)}"))
            for format in ("csv", "ndjson")
        ],
    )


def _download_query(page: PageContext, query: Mapping[str, str | None], format: str) -> str:
    return query_text({**query, "asof": page.asof, "format": format})


def _row(page: PageContext, finding: Mapping[str, Any]) -> FindingRow:
    xid = finding["xid"]
    url = page.link(f"explore{xid}")
    return FindingRow(finding["level"], finding["rule"], xid, url, finding["path"], finding["text"])
