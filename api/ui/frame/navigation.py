"""The links of the navigation "Main" and of the breadcrumbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from annals.api.ui.page_route import RouteTable
from annals.domain.access.roles import Caller

#: The links by text, each with its path below `/ui/`.
_LINKS: Final = {
    "Overview": "",
    "Explore": "explore/",
    "Search": "search",
    "Timeline": "timeline",
    "Findings": "findings",
    "Subscriptions": "subscriptions",
    "Model": "model",
    "Capabilities": "capabilities",
    "Import and export": "transfer",
}
_ADMIN_LINKS: Final = {"Replication": "links", "API keys": "keys", "Grants": "grants", "Settings": "settings"}
#: Those of the admin links that an admin of single places has a use for.
_PLACE_ADMIN_LINKS: Final = {text: _ADMIN_LINKS[text] for text in ("API keys", "Grants")}


class PageLink(NamedTuple):
    """A link to a page. is_current: whether the page is at or below it."""

    text: str
    url: str
    is_current: bool = False


def navigation_links(
    table: RouteTable, link: Callable[[str], str], current: str, caller: Caller | None
) -> list[PageLink]:
    """The links to the pages that exist. current: the text of that of the page."""
    links = _LINKS | _admin_links(caller)
    return [
        PageLink(text, link(path), text == current) for text, path in links.items() if table.find_path(path) is not None
    ]


def _admin_links(caller: Caller | None) -> dict[str, str]:
    if caller is None or not caller.administers_something:
        return {}
    return _ADMIN_LINKS if caller.is_admin else _PLACE_ADMIN_LINKS


def breadcrumbs(segments: Sequence[str], link: Callable[[str], str], *, ends_with_page: bool) -> list[PageLink]:
    """Links from the registry down to an entity or a collection. segments: of its xid, or of the collection's path.

    ends_with_page: whether the last one is the page itself.
    """
    return list(_breadcrumbs(segments, link, ends_with_page)) if segments else []


def _breadcrumbs(segments: Sequence[str], link: Callable[[str], str], ends_with_page: bool) -> Iterator[PageLink]:
    yield PageLink("Registry", link("explore/"))
    for index, segment in enumerate(segments, 1):
        is_page = ends_with_page and index == len(segments)
        yield PageLink(segment, link("explore/" + "/".join(segments[:index])), is_page)
