"""Pages of lists that the API gives in the order of the log, newest first, with links in both directions (UI-48)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.api.ui.own_api import Query
from annals.api.ui.page_context import PageContext

_AFTER: Final = "after"
_ORDER: Final = "order"
_ASCENDING: Final = "asc"


class LogPageLinks(NamedTuple):
    """The links of the navigation "Pages"; None at the ends."""

    first: str | None
    previous: str | None
    next: str | None
    last: str | None


@dataclass(frozen=True, slots=True)
class LogPage:
    """The items of a page, newest first."""

    items: list[Mapping[str, Any]]
    links: LogPageLinks


async def read_log_page(
    page: PageContext, path: str, query: Query, position_of: Callable[[Mapping[str, Any]], int]
) -> LogPage:
    """The items that a page asks for. position_of: the position of an item in the log, which cursors have.

    Towards the newest, a page reads in the order of the log and turns the items around. Raises: Problem.
    """
    after, is_ascending = page.param(_AFTER), page.param(_ORDER) == _ASCENDING
    cursor = {_ORDER: _ASCENDING if is_ascending else "desc", _AFTER: after or None, "limit": str(page.limit)}
    answer = await page.get(path, {**query, **cursor}, with_asof=False)
    items: list[Mapping[str, Any]] = answer.json
    has_more = answer.link("next") is not None
    if is_ascending:
        items.reverse()
    has_newer, has_older = (has_more, bool(after)) if is_ascending else (bool(after), has_more)

    def link(**cursor: str | None) -> str:
        given = {name: values for name, values in page.params.items() if name not in (_AFTER, _ORDER, "saved")}
        return page.link(page.path, **{**given, **cursor})

    newest, oldest = (str(position_of(items[0])), str(position_of(items[-1]))) if items else (None, None)
    return LogPage(
        items,
        LogPageLinks(
            link() if has_newer else None,
            link(order=_ASCENDING, after=newest) if has_newer and newest else None,
            link(after=oldest) if has_older and oldest else None,
            link(order=_ASCENDING) if has_older else None,
        ),
    )
