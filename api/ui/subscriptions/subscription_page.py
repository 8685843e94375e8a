"""The page of one subscription: its state, its last attempts, its dead letters, and what can be done (UI-55)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.api.http.response import Response
from annals.api.ui.forms import read_form
from annals.api.ui.own_api import ApiAnswer
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.api.ui.subscriptions.replay import ReplayCount, count_replay, parse_range
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import BadRequest, NotFound, Problem

_ACTION: Final = "action"
_ACTIONS: Final = ("pause", "resume", "verify")
_REDELIVER: Final = "redeliver"
_REPLAY: Final = "replay"
_ATTEMPTS: Final = {"limit": "50"}
_DEAD_LETTERS: Final = {"limit": "50"}
#: Members of the status that are times.
_TIMES: Final = ("lastsuccess", "lastattempt", "nextattempt")


async def subscription_page(page: PageContext) -> Response:
    """The page. Raises: NotFound, BadRequest."""
    id = page.path_params["id"]
    subscription = (await page.get(f"/subscriptions/{id}")).json
    if page.request.method != "POST":
        count, alert = None, None
        try:
            count = await count_replay(page, subscription, page.param("from"), page.param("to"))
        except (NotFound, Forbidden):
            raise
        except Problem as problem:
            alert = shown_problem(problem, page.request)
        return await _show(page, subscription, count, alert, 400 if alert else 200)
    try:
        answer = await _act(page, id)
    except (NotFound, Forbidden):
        raise
    except Problem as problem:
        return await _show(page, subscription, None, shown_problem(problem, page.request), problem.status)
    return page.saved(f"subscriptions/{id}", answer)


async def _act(page: PageContext, id: str) -> ApiAnswer:
    """Does what a button says. Raises: Problem."""
    form = await read_form(page.request, page.receive)
    action, _, argument = form.get(_ACTION, "").partition(":")
    if action in _ACTIONS:
        return await page.send("POST", f"/subscriptions/{id}/actions/{action}")
    if action == _REDELIVER:
        return await page.send("POST", f"/subscriptions/{id}/deadletters/{argument}/redeliver")
    if action == _REPLAY:
        body = parse_range(form.get("from", ""), form.get("to", ""))
        return await page.send("POST", f"/subscriptions/{id}/actions/replay", body=body)
    raise BadRequest(error_detail='the field "action" names no action')


async def _show(
    page: PageContext,
    subscription: Mapping[str, Any],
    replay: ReplayCount | None,
    alert: ShownProblem | None,
    status: int,
) -> Response:
    id = subscription["id"]
    attempts = (await page.get(f"/subscriptions/{id}/attempts", _ATTEMPTS)).json
    dead_letters = (await page.get(f"/subscriptions/{id}/deadletters", _DEAD_LETTERS)).json
    delivery = dict(subscription.get("status", {}))
    state = delivery.pop("state", "")
    return await page.render(
        "subscriptions/subscription.html",
        f"Subscription {id}",
        status,
        subscription={name: value for name, value in subscription.items() if name not in ("id", "status")},
        state=state,
        delivery=delivery,
        times=_TIMES,
        attempts=attempts["attempts"],
        hours=attempts["hours"],
        dead_letters=dead_letters,
        can_write=page.caller.writes_somewhere,
        has_stopped=state in ("paused", "suspended", "gone"),
        own_path=f"subscriptions/{id}",
        replay=replay,
        alert=alert,
    )
