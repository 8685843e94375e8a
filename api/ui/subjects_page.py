"""The page of the subjects that Confluent's API shows, each with its entity (UI-69)."""

from __future__ import annotations

import re
from typing import Any, Final

from annals.api.http.response import Response
from annals.api.ui.log_pages import LogPageLinks
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.problems import BadRequest

_NUMBER: Final = re.compile(r"[0-9]{1,9}\Z")


async def subjects_page(page: PageContext) -> Response:
    """The page. A context that is none leaves the list empty. Raises: Forbidden."""
    context, text = page.param("context"), page.param("offset", "0")
    offset = int(text) if _NUMBER.match(text) else 0
    query = {"context": context or None, "offset": str(offset), "limit": str(page.limit)}
    alert: ShownProblem | None = None
    status = 200
    found: dict[str, Any] = {"count": 0, "contexts": [], "subjects": []}
    try:
        found = (await page.get("/-/subjects", query)).json
    except BadRequest as problem:
        if page.asof is not None and not context:
            raise
        alert, status = shown_problem(problem, page.asked), problem.status
    return await page.render(
        "subjects.html",
        "Subjects",
        status,
        alert=alert,
        context=context,
        found=found,
        pages=_page_links(page, found["count"], offset),
    )


def _page_links(page: PageContext, count: int, offset: int) -> LogPageLinks:
    def link(start: int) -> str:
        given = {name: page.param(name) or None for name in ("context", "limit")}
        return page.link(page.path, **given, offset=str(start) if start else None)

    has_previous, has_next = offset > 0, offset + page.limit < count
    last = (count - 1) // page.limit * page.limit
    return LogPageLinks(
        link(0) if has_previous else None,
        link(max(0, offset - page.limit)) if has_previous else None,
        link(offset + page.limit) if has_next else None,
        link(last) if has_next else None,
    )
