"""Problems as pages: what is wrong, where, and what to do (UI-27)."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from annals.api.http.problem_response import problem_body, retry_headers
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.openapi.problem_causes import problem_causes
from annals.api.ui.page_context import PageContext
from annals.domain.errors.problems import MismatchedEpoch, Problem

TEMPLATE: Final = "problem.html"
_HEADINGS: Final = {
    401: "Sign-in needed",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed here",
    409: "Conflict",
    429: "Too many attempts",
}
_CODE: Final = re.compile(r"`([^`]*)`")


class ShownProblem(NamedTuple):
    """A problem as text. title: what is wrong, and where. cure: what to do. name, url: of its explanation."""

    title: str
    detail: str
    cure: str
    name: str
    url: str


def heading(problem: Problem) -> str:
    """The heading of a problem's page."""
    if isinstance(problem, MismatchedEpoch):
        return "Conflict"
    return "Not available" if problem.status >= 500 else _HEADINGS.get(problem.status, "Bad request")


def shown_problem(problem: Problem, request: Request, *, has_past: bool = False) -> ShownProblem:
    """What pages say about a problem. has_past: whether what it is about may be readable at an earlier moment."""
    body: dict[str, Any] = problem_body(problem, request)
    cause = problem_causes().get(problem.name)
    cure = _CODE.sub(r"\1", cause.cures if has_past else cause.cure) if cause else ""
    url = f"{request.base}/-/docs#{problem.name}"
    return ShownProblem(body["title"], body.get("detail", ""), cure, problem.name, url)


async def problem_page(page: PageContext, problem: Problem) -> Response:
    """The page of a refused request, in the frame of the page that was requested."""
    is_missing = problem.status == 404 and page.has_page("timeline")
    has_past = page.route.takes_asof and _missing_path(page) is not None
    response = await page.render(
        TEMPLATE,
        heading(problem),
        problem.status,
        problem=shown_problem(problem, page.asked, has_past=has_past),
        timeline=page.link("timeline", path=_missing_path(page)) if is_missing else "",
    )
    return with_retry(response, problem)


def with_retry(response: Response, problem: Problem) -> Response:
    """The page with the header that says when to try again, if that makes sense."""
    return Response(response.status, [*response.headers, *retry_headers(problem)], response.body)


def _missing_path(page: PageContext) -> str | None:
    """The xid of what a page is about; None if it is about no entity."""
    xid = page.path_params.get("xid")
    return f"/{xid}" if xid else None
