"""The page with all subscriptions that the caller may see (UI-53, UI-110)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.page_context import PageContext
from annals.api.ui.text_values import shell_quoted

_EXAMPLE: Final = '{"sink": "https://example.com/events", "protocol": "HTTP"}'


class SubscriptionRow(NamedTuple):
    """One subscription. sink: without its query. lag: in positions; None if no deliverer has said it."""

    id: str
    url: str
    sink: str
    protocol: str
    state: str
    lag: int | None
    dead_letters: int


async def list_page(page: PageContext) -> Response:
    """The page."""
    found, pages = await page.get_list("/subscriptions")
    return await page.render(
        "subscriptions/list.html",
        "Subscriptions",
        rows=[_row(page, each) for each in found],
        pages=pages,
        create_url=page.link("subscriptions/new") if page.caller.writes_somewhere else "",
        curl=f"curl {shell_quoted(page.api_url('/subscriptions'))} -H 'Content-Type: application/json' -d '{_EXAMPLE}'",
    )


def _row(page: PageContext, subscription: Mapping[str, Any]) -> SubscriptionRow:
    status = subscription.get("status", {})
    return SubscriptionRow(
        subscription["id"],
        page.link(f"subscriptions/{subscription['id']}"),
        subscription["sink"].partition("?")[0],
        subscription["protocol"],
        status.get("state", ""),
        status.get("lag"),
        status.get("deadletters", 0),
    )
