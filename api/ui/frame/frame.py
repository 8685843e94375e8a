"""Builds the frame of a page from the answers of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final

from annals import __version__
from annals.api.http.request import Request
from annals.api.http.session_cookie import session_cookie
from annals.api.ui.frame.asof_form import AsofForm, build_asof_form
from annals.api.ui.frame.navigation import PageLink, breadcrumbs, navigation_links
from annals.api.ui.frame.newer_changes import NewerChanges, newer_changes
from annals.api.ui.own_api import ApiAnswer
from annals.api.ui.page_context import PageContext
from annals.api.ui.page_route import RouteTable
from annals.api.ui.sign_in.local_paths import HOME, below_root, login_path
from annals.api.ui.text_values import shell_quoted
from annals.domain.access.roles import ANONYMOUS
from annals.domain.errors.problems import Problem

#: The title of pages for callers who may not read the registry's id.
_NO_ID: Final = "Annals"
_NOTHING_SAVED: Final = "nothing"
_HEAD: Final = "/-/log/head"


@dataclass(frozen=True, slots=True)
class SavedChange:
    """What the write before a page has recorded. events: 0 for nothing. url: of the interaction's page."""

    events: int
    url: str


@dataclass(frozen=True, slots=True)
class Account:
    """Who is signed in. name: empty for an anonymous caller. has_session: whether there is one to end.

    sign_in_url: of the sign-in that leads back to the page; empty on a server without sign-in.
    """

    name: str
    has_session: bool
    sign_in_url: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What templates show around a page.

    head: the last position of the log; None if the caller may not know it. asof: None where a page shows the present
    alone. raw_url: the API's URL of what the page shows; empty for nothing. saved: of the write that led to the page.
    newer: what the page follows to say how many changes are newer; None if it does not.
    """

    registryid: str
    navigation: list[PageLink]
    account: Account
    version: str = __version__
    head: int | None = None
    asof: AsofForm | None = None
    breadcrumbs: list[PageLink] | None = None
    search: str = ""
    raw_url: str = ""
    curl: str = ""
    saved: SavedChange | None = None
    newer: NewerChanges | None = None


def bare_frame(request: Request, table: RouteTable, *, can_sign_in: bool) -> Frame:
    """The frame of a page without a caller: of the sign-in, and of problems that come before it."""

    def link(path: str) -> str:
        return below_root(request, HOME + path)

    account = Account("", False, _sign_in_url(request) if can_sign_in else "")
    return Frame(_NO_ID, navigation_links(table, link, "", None), account, raw_url=f"{request.base}/-/")


async def build_frame(page: PageContext, *, can_sign_in: bool, follows_changes: bool = False) -> Frame:
    """The frame of a page. What the caller may not read is left out. follows_changes: if the page is one that can."""
    account = _account(page, can_sign_in)
    registry, head = await asyncio.gather(_unless_refused(page.own_api.get(page.request, "/")), _head(page))
    head_position = head["position"] if head else None
    raw_url = "" if page.raw_json == "" else page.api_url(page.raw_json or "/-/")
    is_below_explore = page.path.startswith("explore/")
    return Frame(
        registryid=registry["registryid"] if registry else _NO_ID,
        navigation=navigation_links(page.table, page.link, page.route.navigation, page.caller),
        head=head_position,
        account=account,
        asof=await _asof_form(page, head) if head and page.route.takes_asof else None,
        breadcrumbs=breadcrumbs(_xid_segments(page), page.link, ends_with_page=is_below_explore),
        search=page.param("q") if page.path == "search" else "",
        raw_url=raw_url,
        curl=curl_line(raw_url, has_credential=bool(account.name)),
        saved=await _saved_change(page),
        newer=newer_changes(page) if follows_changes else None,
    )


def curl_line(url: str, *, has_credential: bool = False) -> str:
    """A command that reads a URL. has_credential: whether the caller needs one, which the shell then has to know."""
    credential = ' -H "Authorization: Bearer $TOKEN"' if has_credential else ""
    return f"curl{credential} {shell_quoted(url)}"


def _account(page: PageContext, can_sign_in: bool) -> Account:
    name = "" if page.caller.name == ANONYMOUS.name else page.caller.name
    has_session = can_sign_in and session_cookie(page.request) is not None
    return Account(name, has_session, _sign_in_url(page.request) if can_sign_in else "")


def _sign_in_url(request: Request) -> str:
    return below_root(request, login_path(request))


def _xid_segments(page: PageContext) -> list[str]:
    """The segments of the xid, or of the collection, that the path of a page names; empty if it names none."""
    return [segment for segment in page.path_params.get("xid", "").split("/") if segment]


async def _asof_form(page: PageContext, head: Any) -> AsofForm:
    moment = head
    if page.asof is not None:  # a moment that does not exist is the page's own problem
        asof = {"asof": page.asof}
        moment = await _unless_refused(page.own_api.get(page.request, _HEAD, asof)) or head
    return build_asof_form(page.request, moment["position"], moment.get("time", ""), head["position"], page.asof or "")


async def _head(page: PageContext) -> Any:
    return page.first_head or await page.read_head()


async def _saved_change(page: PageContext) -> SavedChange | None:
    id = page.param("saved")
    if not id:
        return None
    if id == _NOTHING_SAVED:
        return SavedChange(0, "")
    query = {"until": id, "order": "desc", "limit": "1"}
    found = await _unless_refused(page.own_api.get(page.request, "/-/interactions", query))
    if not found or found[0]["xregcorrelationid"] != id:
        return None
    return SavedChange(found[0]["last"] - found[0]["first"] + 1, page.link(f"interactions/{id}"))


async def _unless_refused(reading: Awaitable[ApiAnswer]) -> Any:
    """The JSON of an answer; None if the caller may not have it."""
    try:
        return (await reading).json
    except Problem:
        return None
