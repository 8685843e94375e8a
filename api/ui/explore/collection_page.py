"""The pages of collections: members by filter, order and page (UI-42, UI-71, UI-72)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.explore.deprecation import is_deprecated
from annals.api.ui.explore.entity_view import read_xref
from annals.api.ui.own_api import ApiAnswer
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.api.ui.registry_model import ModelPlace
from annals.api.ui.rights import create_link
from annals.domain.errors.problems import BadFilter

#: Attributes that a list does not show: they are long, or URLs of this server.
_NOT_LISTED: Final = frozenset(("description", "documentation", "icon", "formatvalidatedreason"))
_MAX_COLUMNS: Final = 9
#: Several filters in one text.
_JOINED: Final = re.compile(r"&filter=")
#: Attributes that are times.
_TIMES: Final = ("createdat", "modifiedat")


class SortableColumn(NamedTuple):
    """A column. url: of the same list sorted by it. sorted: `ascending`, `descending`, or empty."""

    name: str
    url: str
    sorted: str


class Row(NamedTuple):
    """A member. values: those after the id, each with whether it is a time. marks: words about it."""

    id: str
    url: str
    values: list[tuple[Any, bool]]
    marks: list[str]


class PageLinks(NamedTuple):
    """The links of the navigation "Pages"; None at the ends."""

    first: str | None
    previous: str | None
    next: str | None
    last: str | None


async def collection_page(page: PageContext, place: ModelPlace) -> Response:
    """The page. A filter that the API refuses leaves the list empty and its text in the field."""
    members: Mapping[str, Any] = {}
    alert: ShownProblem | None = None
    answer: ApiAnswer | None = None
    status = 200
    try:
        answer = await page.get(place.xid, _query(page, place))
        members = answer.json
    except BadFilter as problem:
        alert, status = shown_problem(problem, page.asked), problem.status
    names = list(_column_names(page, place, members))
    return await page.render(
        "explore/collection.html",
        place.plural,
        status,
        place=place,
        alert=alert,
        filter=page.param("filter"),
        sort=page.param("sort"),
        clear=page.link(page.path),
        columns=[_column(page, name) for name in names],
        rows=[_row(page, place, id, member, names) for id, member in members.items()],
        count=_count(answer, members),
        pages=_page_links(page, answer),
        create="" if await read_xref(page, place) else await create_link(page, place),
        curl=place.curl(page.request.base),
    )


def _query(page: PageContext, place: ModelPlace) -> dict[str, str | list[str] | None]:
    filters = _JOINED.split(page.param("filter").strip())
    return {
        "filter": [each for each in filters if each] or None,
        "sort": page.param("sort") or None,
        "inline": "meta" if place.is_resource else None,
        "limit": str(page.limit),
        "cursor": page.param("cursor") or None,
    }


def _column_names(page: PageContext, place: ModelPlace, members: Mapping[str, Any]) -> Iterator[str]:
    """The id, then what tells members apart, then when they changed; without what no member of the page has."""
    sorted_name = page.param("sort").partition("=")[0]
    listed = [
        name
        for name in place.scalar_names()
        if name not in (*place.server_set, *_NOT_LISTED, *place.document_names, place.id_name)
        and not name.endswith("url")
        and name != f"{place.definition.get('singular')}id"
        and (name in ("name", sorted_name) or not members or any(name in member for member in members.values()))
    ]
    return iter((place.id_name, *listed[:_MAX_COLUMNS], "epoch", "modifiedat"))


def _column(page: PageContext, name: str) -> SortableColumn:
    attribute, _, order = page.param("sort").partition("=")
    is_sorted = attribute == name
    is_descending = is_sorted and order == "desc"
    sort = f"{name}=desc" if is_sorted and not is_descending else name
    url = page.link(page.path, sort=sort, filter=page.param("filter") or None, limit=page.param("limit") or None)
    return SortableColumn(name, url, ("descending" if is_descending else "ascending") if is_sorted else "")


def _row(page: PageContext, place: ModelPlace, id: str, member: Mapping[str, Any], names: list[str]) -> Row:
    meta = member.get("meta", {}) if place.is_resource else {}
    words = {
        "Default": place.is_version and member.get("isdefault"),
        "Deprecated": is_deprecated(member) or is_deprecated(meta),
        "Alias": "xref" in meta,
    }
    return Row(
        id,
        page.link(f"explore{place.xid}/{id}"),
        [(member.get(name, ""), name in _TIMES and name in member) for name in names[1:]],
        [word for word, holds in words.items() if holds],
    )


def _count(answer: ApiAnswer | None, members: Mapping[str, Any]) -> int:
    """The number of members on all pages."""
    links = [answer.link(relation) for relation in ("next", "prev", "first")] if answer else []
    return next((link.count for link in links if link and link.count is not None), len(members))


def _page_links(page: PageContext, answer: ApiAnswer | None) -> PageLinks:
    return PageLinks(*(_page_link(page, answer, relation) for relation in ("first", "prev", "next", "last")))


def _page_link(page: PageContext, answer: ApiAnswer | None, relation: str) -> str | None:
    link = answer.link(relation) if answer else None
    if link is None or (relation in ("first", "last") and not _has_more(answer)):
        return None
    given = {name: page.param(name) or None for name in ("filter", "sort", "limit")}
    return page.link(page.path, **given, cursor=link.query.get("cursor"))


def _has_more(answer: ApiAnswer | None) -> bool:
    """Whether there is another page."""
    return answer is not None and any(answer.link(relation) for relation in ("next", "prev"))
