"""The pages "Model" and "Capabilities": JSON that is edited as a text, previewed and saved (UI-57, UI-58, UI-120)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from annals.api.http.response import Headers, Response
from annals.api.ui.edit.dry_runs import FutureEvents, future_events
from annals.api.ui.forms import Form, read_upload
from annals.api.ui.model.text_difference import DefinitionDifference, difference, value_difference
from annals.api.ui.own_api import Query
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, heading, shown_problem
from annals.api.ui.rights import may_write
from annals.domain.errors.http_errors import BodyTooLarge, Forbidden, PreconditionFailed
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import InvalidJson, Json, dumps, dumps_indented, loads

#: The limit of a text in bytes, and that of a form, which encodes it. The API takes longer texts.
MAX_TEXT: Final = 1 << 20
MAX_BYTES: Final = 4 << 20
_PREVIEW: Final = "preview"
_TEXT: Final = "text"
_TAG: Final = "tag"
_DRY_RUN: Final = {"dryrun": ""}
_CHANGED: Final = "It has been changed since the form was loaded. Compare with what is stored now, and save again."


@dataclass(frozen=True)
class DefinitionForm:
    """The form. label: of the text box. tag: of the stored state that the text began with.

    misfits: stored entities that would not fit.
    """

    title: str
    label: str
    text: str
    tag: str
    may_save: bool
    alert: ShownProblem | None = None
    difference: DefinitionDifference | None = None
    events: FutureEvents | None = None
    misfits: tuple[str, ...] = ()

    async def render(self, page: PageContext, status: int = 200, title: str = "") -> Response:
        """The page."""
        return await page.render("model/definition.html", title or self.title, status, form=self)


async def model_page(page: PageContext) -> Response:
    """The page of the model."""
    return await _definition_page(page, "Model", "Model source", "/modelsource")


async def capabilities_page(page: PageContext) -> Response:
    """The page of the capabilities."""
    return await _definition_page(page, "Capabilities", "Capabilities", "/capabilities")


async def _definition_page(page: PageContext, title: str, label: str, path: str) -> Response:
    stored = await page.get(path)
    text, tag = dumps_indented(stored.json), stored.header("etag") or ""
    shown = DefinitionForm(title, label, text, tag, await may_write(page, path, "PUT"))
    if page.request.method != "POST":
        return await shown.render(page)
    if not shown.may_save:
        raise Forbidden(caller=page.caller.name)
    try:
        form = await read_upload(page.request, page.receive, MAX_BYTES)
    except BodyTooLarge as problem:
        return await _too_large(page, path, shown, problem)
    if form.kept:  # a sign-in was in between
        return await replace(shown, text=form.kept.get(_TEXT, ""), tag=form.kept.get(_TAG, "")).render(page)
    shown = replace(shown, text=form.get(_TEXT), tag=form.get(_TAG))
    if len(shown.text.encode()) > MAX_TEXT:
        return await _too_large(page, path, shown, BodyTooLarge(max_size=MAX_TEXT))
    return await _act(page, path, shown, stored.json, form)


async def _act(page: PageContext, path: str, shown: DefinitionForm, stored: Json, form: Form) -> Response:
    """What a button of the form does. stored: what is stored now."""
    is_preview = form.get("action") == _PREVIEW
    try:
        body = await asyncio.to_thread(loads, shown.text.encode())
        if not is_preview and await asyncio.to_thread(dumps, body) == dumps(stored):
            return page.redirect(page.path, saved="nothing")
        if is_preview:
            changes = await asyncio.to_thread(value_difference, dumps_indented(stored), body)
            shown = replace(shown, difference=changes)
        answer = await _send(page, path, body, shown, _DRY_RUN if is_preview else None)
        if is_preview:
            return await replace(shown, events=future_events(answer)).render(page)
        return page.saved(page.path, answer)
    except InvalidJson as error:
        alert = ShownProblem(
            f"This is not JSON: {error}.", "", "", "parsing_data", page.api_url("/-/docs#parsing_data")
        )
        return await replace(shown, alert=alert).render(page, 400)
    except Forbidden:
        raise
    except PreconditionFailed as problem:
        alert = shown_problem(problem, page.asked)._replace(title=_CHANGED, cure="")
        changes = await asyncio.to_thread(difference, dumps_indented(stored), shown.text)
        now = (await page.get(path)).header("etag") or ""
        return await replace(shown, alert=alert, difference=changes, tag=now).render(page, 409, "Conflict")
    except Problem as problem:
        alert, misfits = shown_problem(problem, page.asked), _xids(problem.extensions.get("entities"))
        return await replace(shown, alert=alert, misfits=misfits).render(page, problem.status, _title(problem, shown))


async def _too_large(page: PageContext, path: str, shown: DefinitionForm, problem: BodyTooLarge) -> Response:
    """The form with the error that its text is too long for a page."""
    alert = shown_problem(problem, page.asked)._replace(
        title=f"The text is larger than {MAX_TEXT:,} bytes, which is the limit of this page.",
        cure=f"Send it to the API, with PUT {path}.",
    )
    return await replace(shown, alert=alert).render(page, problem.status)


def _xids(listed: object) -> tuple[str, ...]:
    """What a member of a problem lists; nothing for a problem without it."""
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


async def _send(page: PageContext, path: str, body: Any, shown: DefinitionForm, query: Query | None) -> Any:
    condition: Headers = [(b"if-match", shown.tag.encode())] if shown.tag and query is None else []
    return await page.send("PUT", path, query, body, headers=condition)


def _title(problem: Problem, shown: DefinitionForm) -> str:
    return heading(problem) if problem.status >= 500 else shown.title
