"""The surface of `/-/search`.

A page shows the index at the time of its request. The index follows the log; `position` says how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.types import Receive

from annals.api.audit.formats import ListWrapper, TableLayout
from annals.api.audit.responses import TableContent, stream_table
from annals.api.http.methods import check_caller, read_only_options
from annals.api.http.next_link import next_link
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.search.request_params import SearchParams, parse_search_params
from annals.domain.search.matching import matches
from annals.domain.search.query import Query
from annals.domain.search.texts import SearchedEntity, TextPlace
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position
from annals.projections.search.index_reader import IndexReader
from annals.projections.search.search import ResultPage, search

SEARCH: Final = "search"
#: The most matches, and characters of a text, that are shown of one result.
MAX_MATCHES: Final = 20
MAX_TEXT_LENGTH: Final = 1000


def index_position(view: View) -> int:
    """The log position that results show."""
    return IndexReader(view.database).position()


#: How far the index is, by the segments of paths whose answers show it: reads with `waitfor` wait for it.
SEARCH_POSITIONS: Final[Mapping[tuple[str, ...], Callable[[View], int]]] = {
    ("-", SEARCH): index_position,
    ("ui", SEARCH): index_position,
}


class SearchRoutes:
    """The surface of `/-/search`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: Forbidden, BadRequest, MethodNotAllowed."""
        if (options := read_only_options(request)) is not None:
            return options
        check_caller(replace(request, segments=()))  # what they see is searched
        params = parse_search_params(request)

        def read_table(view: View) -> TableContent:
            visibility = view.seen_by(request.caller).visibility
            index = IndexReader(view.database, visibility, params.all_versions)
            position = index.position()
            note_position(position)
            return _content(request, params, search(index, params.query, params.limit, params.after), position)

        return await stream_table(self._registry, request, params.audit_params, read_table)


def _content(request: Request, params: SearchParams, page: ResultPage, position: int) -> TableContent:
    members = {"count": page.count, **({"more": True} if page.more else {}), "position": position}
    return TableContent(
        _result_table(params.query),
        [result.entity for result in page.results],
        position,
        ListWrapper(members, "results"),
        [next_link(request, f"{page.next.rank}:{page.next.tree_key}")] if page.next else [],
    )


def _result_table(query: Query) -> TableLayout[SearchedEntity]:
    def members(entity: SearchedEntity) -> dict[str, Any]:
        return {
            "xid": entity.xid,
            "type": entity.type,
            "name": entity.name,
            "matches": [
                {"in": TextPlace(place).word, "path": path, "text": text[:MAX_TEXT_LENGTH]}
                for place, path, text in list(matches(query, entity))[:MAX_MATCHES]
            ],
        }

    def rows(entity: SearchedEntity) -> list[dict[str, Any]]:
        result = members(entity)
        found: list[dict[str, Any]] = result.pop("matches")
        return [{**result, **match} for match in found or ({},)]

    return TableLayout(("xid", "type", "name", "in", "path", "text"), members, rows)
