"""What a page function gets: its request, the registry's own API, links to other pages, and how to render."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from starlette.types import Receive

from annals.api.http.query_params import QueryParams, all_query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.ui.own_api import ApiAnswer, OwnApi, Query, query_text
from annals.api.ui.page_route import PageRoute, RouteTable
from annals.api.ui.redirect import redirect
from annals.api.ui.sign_in.local_paths import HOME, below_root
from annals.domain.access.roles import Caller
from annals.domain.errors.problems import BadRequest, Problem
from annals.domain.values.json_text import Json

#: Characters of a path that a URL has as they are.
_PATH_CHARACTERS: Final = "/:@~!$&'()*+,;=-._"
#: Largest number of rows of one page (UI-18).
MAX_ROWS: Final = 500
DEFAULT_ROWS: Final = 50
_NUMBER: Final = re.compile(r"[0-9]{1,6}\Z")


class PageRenderer(Protocol):
    """Puts a page into its frame."""

    async def render_page(
        self, page: PageContext, template: str, title: str, status: int, values: Mapping[str, Any]
    ) -> Response: ...


class ForwardPages(NamedTuple):
    """The links of the navigation "Pages" of a list that goes forward only; None at the ends."""

    first: str | None
    previous: None
    next: str | None
    last: None


class PageContext:
    """One request of a page. Page functions read with `get`, shape plain values, and return `await render(...)`.

    route: the row of the table. path_params: what stands for the names in its template. warnings: about the settings.
    """

    def __init__(
        self,
        request: Request,
        receive: Receive,
        route: PageRoute,
        path_params: Mapping[str, str],
        own_api: OwnApi,
        table: RouteTable,
        renderer: PageRenderer,
        warnings: Sequence[str] = (),
    ) -> None:
        self.request = request
        self.receive = receive
        self.route = route
        self.path_params = path_params
        self.params: QueryParams = all_query_params(request)
        self.table = table
        self.own_api = own_api
        self.asked = request  # the last request to the API, which problems are about
        self.raw_json: str | None = None  # path and query of what the page shows; empty for nothing
        self.first_head: Mapping[str, Any] | None = None  # the head of the log before the page was read
        self.warnings = warnings
        self._renderer = renderer

    @property
    def caller(self) -> Caller:
        """Who requests the page."""
        return self.request.caller

    @property
    def asof(self) -> str | None:
        """The moment that the page shows; None for the present. Raises: BadRequest if it appears twice."""
        return single_value(self.params, "asof") or None

    @property
    def follows_changes(self) -> bool:
        """Whether the page shows the present, and says that there are newer changes. Raises: BadRequest."""
        return self.route.follows_changes and self.asof is None

    async def read_head(self) -> Mapping[str, Any] | None:
        """The head of the log; None if the caller may not know it."""
        try:
            found: Mapping[str, Any] = (await self.own_api.get(self.request, "/-/log/head")).json
        except Problem:
            return None
        return found

    @property
    def path(self) -> str:
        """The path of the page below `/ui/`."""
        return "/".join(self.request.segments[1:])

    def param(self, name: str, default: str = "") -> str:
        """The value of a query parameter that may appear once. Raises: BadRequest."""
        return single_value(self.params, name) or default

    @property
    def limit(self) -> int:
        """The number of rows of one page of a list (UI-18). Raises: BadRequest."""
        text = self.param("limit", str(DEFAULT_ROWS))
        if not _NUMBER.match(text) or not 1 <= int(text) <= MAX_ROWS:
            raise BadRequest(error_detail=f'the parameter "limit": it takes a number from 1 to {MAX_ROWS}')
        return int(text)

    async def get(self, path: str, query: Query | None = None, *, with_asof: bool = True) -> ApiAnswer:
        """The API's answer to a read, as of the moment that the page shows. path: with a leading slash, not encoded.

        The link "Raw JSON" leads to what a page reads first, unless it sets `raw_json`. Raises: Problem.
        """
        query = dict(query or {})
        if with_asof and self.asof is not None and "asof" not in query:
            query["asof"] = self.asof
        if self.raw_json is None:
            self.raw_json = url_path(path) + (f"?{query_text(query)}" if query_text(query) else "")
        self.asked = self.request.with_path(url_path(path))
        return await self.own_api.get(self.request, url_path(path), query)

    async def get_list(self, path: str, default_limit: int = DEFAULT_ROWS) -> tuple[Any, ForwardPages]:
        """A page of a list of the API that goes forward by `after`, and the links to other pages.

        Raises: Problem; see `get`.
        """
        after, limit = self.param("after") or None, self.param("limit") or None
        answer = await self.get(path, {"limit": str(self.limit if limit else default_limit), "after": after})
        following = answer.link("next")
        first = self.link(self.path, limit=limit) if after else None
        next = self.link(self.path, limit=limit, after=following.query["after"]) if following else None
        return answer.json, ForwardPages(first, None, next, None)

    async def first_lines(self, path: str, query: Query, count: int) -> AsyncGenerator[Any, None]:
        """The values of the first lines of an answer in NDJSON, of which no more is read. See `get`."""
        if self.raw_json is None:
            self.raw_json = f"{url_path(path)}?{query_text(query)}"
        self.asked = self.request.with_path(url_path(path))
        async for value in self.own_api.lines(self.request, url_path(path), {**query, "format": "ndjson"}, count):
            yield value

    async def send(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | Json = b"",
        content_type: str = "application/json",
        headers: Headers | None = None,
    ) -> ApiAnswer:
        """The API's answer to a write. path: not encoded. Raises: Problem."""
        self.asked = self.request.with_path(url_path(path))
        return await self.own_api.send(self.request, method, url_path(path), query, body, content_type, headers)

    def link(self, path: str, /, **query: str | list[str] | None) -> str:
        """The URL of a page. path: below `/ui/`, not encoded. It keeps the moment if that page shows the past."""
        target = self.table.find_path(path)
        if target is not None and target.takes_asof and "asof" not in query and self.asof is not None:
            query["asof"] = self.asof
        text = query_text(query)
        return below_root(self.request, HOME + url_path(path)) + (f"?{text}" if text else "")

    def has_page(self, path: str) -> bool:
        """Whether there is a page at a path below `/ui/`."""
        return self.table.find_path(path) is not None

    def api_url(self, path_and_query: str) -> str:
        """The absolute URL of a path of the API, which may have a query."""
        return self.request.base + path_and_query

    async def render(self, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """The page. title: its heading. values: what the template shows beyond `frame`, `page`, `link` and `title`."""
        return await self._renderer.render_page(self, template, title, status, values)

    def redirect(self, path: str, /, **query: str | list[str] | None) -> Response:
        """Sends the browser on to a page (303)."""
        return redirect(self.link(path, **query))

    def saved(self, path: str, answer: ApiAnswer) -> Response:
        """Sends the browser on to a page, which then says what a write has recorded (UI-16)."""
        return self.redirect(path, saved=answer.correlation_id or "nothing")


def url_path(path: str) -> str:
    """A path as URLs have it."""
    return quote(path, safe=_PATH_CHARACTERS)
