"""The page of a search (UI-50, UI-107)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.own_api import ApiAnswer
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.problems import BadRequest
from annals.domain.search.matching import marked
from annals.domain.search.query import Query, parse_query

#: The matches that are shown of one result, and the characters of their texts.
_MAX_MATCHES: Final = 5
_MAX_TEXT_LENGTH: Final = 300
_LABELS: Final = "labels."


class Match(NamedTuple):
    """Where words were found. pieces: of the text, each with whether it is one of the words."""

    place: str
    pieces: list[tuple[str, bool]]


class ShownResult(NamedTuple):
    """An entity that was found. further: the number of matches that are not shown."""

    xid: str
    url: str
    type: str
    name: str | None
    matches: list[Match]
    further: int


class SearchPageLinks(NamedTuple):
    """The links of the navigation "Pages": a search has none backwards, besides that to its beginning."""

    first: str | None
    next: str | None
    previous: None = None
    last: None = None


async def search_page(page: PageContext) -> Response:
    """The page. A query that the API refuses stays in the field, with the reason as an alert."""
    text = page.param("q").strip()
    answer: ApiAnswer | None = None
    alert: ShownProblem | None = None
    status = 200
    if text:
        try:
            answer = await page.get("/-/search", _query(page, text), with_asof=False)
        except BadRequest as problem:
            alert, status = shown_problem(problem, page.asked), problem.status
    else:
        page.raw_json = ""  # the API has no answer without a query
    found: Mapping[str, Any] = answer.json if answer else {}
    query = parse_query(text) if answer else Query()
    return await page.render(
        "search.html",
        "Search",
        status,
        query=text,
        alert=alert,
        count=found.get("count"),
        has_more=found.get("more", False),
        results=[_result(page, query, result) for result in found.get("results", ())],
        pages=_page_links(page, answer),
        other_versions=_other_versions(page),
        searches_all_versions=page.param("versions") != "",
        curl=f"curl -G {page.request.base}/-/search --data-urlencode 'q=order'",
    )


def _query(page: PageContext, text: str) -> dict[str, str | None]:
    return {"q": text, **{name: page.param(name) or None for name in ("versions", "limit", "after")}}


def _result(page: PageContext, query: Query, result: Mapping[str, Any]) -> ShownResult:
    matches = result["matches"]
    shown = [_match(query, match) for match in matches[:_MAX_MATCHES]]
    url = page.link(f"explore{result['xid']}")
    return ShownResult(result["xid"], url, result["type"], result["name"], shown, len(matches) - len(shown))


def _match(query: Query, match: Mapping[str, str]) -> Match:
    place, path, text = match["in"], match["path"], match["text"]
    shown = text if len(text) <= _MAX_TEXT_LENGTH else text[: _MAX_TEXT_LENGTH - 1] + "…"
    named = {"field": f"field {path}", "label": f"label {path.removeprefix(_LABELS)}"}
    return Match(named.get(place, place), list(marked(query, shown)))


def _page_links(page: PageContext, answer: ApiAnswer | None) -> SearchPageLinks:
    following = answer.link("next") if answer else None
    kept = {name: page.param(name) or None for name in ("q", "versions", "limit")}
    first = page.link(page.path, **kept) if page.param("after") else None
    return SearchPageLinks(first, page.link(page.path, **kept, after=following.query["after"]) if following else None)


def _other_versions(page: PageContext) -> str:
    """The URL of the same search with all Versions, or with default ones only."""
    versions = None if page.param("versions") else "all"
    return page.link(page.path, q=page.param("q"), versions=versions)
