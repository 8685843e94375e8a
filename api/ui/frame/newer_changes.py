"""Which changes a page of the present says are newer than itself: the feed that its script reads."""

from __future__ import annotations

from typing import Final, NamedTuple

from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext
from annals.api.ui.sign_in.local_paths import below_root

_EVENTS: Final = "/-/events"
#: Parameters of a list that newer changes are not in: of one moment, of one caller, or a page after the first.
_CLOSED_LISTS: Final = ("id", "caller", "until", "after", "order")


class NewerChanges(NamedTuple):
    """feed: the URL of the events below what the page shows. position: of the log before the page was read."""

    feed: str
    position: int


def newer_changes(page: PageContext) -> NewerChanges | None:
    """What the script of a page follows; None for a page that does not change, or whose state is not known."""
    given = {name: "".join(page.params.get(name, ())).strip() for name in (*_CLOSED_LISTS, "path")}
    if page.first_head is None or any(given[name] for name in _CLOSED_LISTS):
        return None
    subject = (page.path_params.get("xid") or given["path"]).strip("/")
    query = query_text({"subject": f"/{subject}"})
    return NewerChanges(f"{below_root(page.request, _EVENTS)}?{query}", page.first_head["position"])
