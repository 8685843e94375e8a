"""Pages that say what an action will do, before a button does it (UI-39)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from annals.api.http.response import Response
from annals.api.ui.forms import read_form
from annals.api.ui.own_api import ApiAnswer
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import shown_problem
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotFound, Problem


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the page says. title: its heading. button: the first word of it. effects: sentences, what will happen.

    cancel: the path of the page to go back to; done: of the one after the action. act: does it. is_dangerous: whether
    something is lost.
    """

    title: str
    button: str
    effects: Sequence[str]
    cancel: str
    done: str
    act: Callable[[], Awaitable[ApiAnswer]]
    is_dangerous: bool = False


async def confirm_page(page: PageContext, confirmation: Confirmation) -> Response:
    """The page; after its button, the one after the action. Raises: NotFound, Forbidden."""
    alert, status = None, 200
    if page.request.method == "POST":
        await read_form(page.request, page.receive)
        try:
            return page.saved(confirmation.done, await confirmation.act())
        except (NotFound, Forbidden):
            raise
        except Problem as problem:
            alert, status = shown_problem(problem, page.asked), problem.status
    return await page.render("confirm.html", confirmation.title, status, confirmation=confirmation, alert=alert)
