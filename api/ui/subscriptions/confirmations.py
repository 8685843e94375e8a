"""The pages that delete a subscription and that discard a dead letter, after saying what will happen (UI-39)."""

from __future__ import annotations

from annals.api.http.response import Response
from annals.api.ui.confirm import Confirmation, confirm_page
from annals.api.ui.page_context import PageContext


async def delete_subscription_page(page: PageContext) -> Response:
    """The page. Raises: NotFound."""
    path = f"/subscriptions/{page.path_params['id']}"
    status = (await page.get(path)).json.get("status", {})
    pending, dead_letters = status.get("pending", 0), status.get("deadletters", 0)
    confirmation = Confirmation(
        title=f"Delete subscription {page.path_params['id']}",
        button="Delete",
        effects=(
            "No further event is sent. Requests that are running may finish.",
            f"{pending} pending events and {dead_letters} dead letters are dropped, and the credential is destroyed.",
        ),
        cancel=path.removeprefix("/"),
        done="subscriptions",
        act=lambda: page.send("DELETE", path),
        is_dangerous=True,
    )
    return await confirm_page(page, confirmation)


async def discard_page(page: PageContext) -> Response:
    """The page. Raises: NotFound."""
    subscription, sequence = f"/subscriptions/{page.path_params['id']}", page.path_params["sequence"]
    path = f"{subscription}/deadletters/{sequence}"
    letter = (await page.get(path)).json
    event = letter.get("event", {})
    confirmation = Confirmation(
        title=f"Discard {sequence} of subscription {page.path_params['id']}",
        button="Discard",
        effects=(
            f"1 dead letter is dropped: the sink never gets the event {event.get('type', '')} of"
            f" {event.get('subject', 'an entity')}, unless a replay sends it.",
        ),
        cancel=subscription.removeprefix("/"),
        done=subscription.removeprefix("/"),
        act=lambda: page.send("DELETE", path),
        is_dangerous=True,
    )
    return await confirm_page(page, confirmation)
