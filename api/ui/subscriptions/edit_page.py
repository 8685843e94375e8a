"""The pages that make and edit a subscription (UI-54), with a preview over the past (UI-110)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.forms import Form, read_upload
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import shown_problem
from annals.api.ui.subscriptions.preview import preview_body
from annals.api.ui.subscriptions.subscription_form import (
    InvalidField,
    document_of,
    has_credential,
    refused_field,
    stored_differences,
    texts_of,
    texts_of_form,
)
from annals.domain.errors.http_errors import Forbidden, PreconditionFailed
from annals.domain.errors.problems import NotFound, Problem

_COLLECTION: Final = "/subscriptions"
_PREVIEW: Final = "/-/subscriptions/preview"
_PREVIEWED: Final = 50
_TAG: Final = "tag"
#: What the template shows of a form that was not sent.
_NOTHING_SENT: Final[Mapping[str, Any]] = {"errors": {}, "alert": None, "preview": None, "differences": None}
_CHANGED: Final = "It has been changed since the form was loaded. Compare with what is stored now, and save again."


class _Target(NamedTuple):
    """What the form writes. id: None for a new subscription. tag: its entity tag when the form was loaded."""

    id: str | None
    stored: Mapping[str, Any]
    tag: str

    @property
    def title(self) -> str:
        return "Create subscription" if self.id is None else "Edit subscription"

    @property
    def back(self) -> str:
        """The path of the page to which Cancel leads."""
        return "subscriptions" if self.id is None else f"subscriptions/{self.id}"


async def new_subscription_page(page: PageContext) -> Response:
    """The page that makes a subscription. Raises: Forbidden."""
    return await _form_page(page, _Target(None, {}, ""))


async def edit_subscription_page(page: PageContext) -> Response:
    """The page that edits a subscription. Raises: NotFound, Forbidden."""
    return await _form_page(page, await _read_target(page, page.path_params["id"]))


async def _read_target(page: PageContext, id: str) -> _Target:
    """A subscription as it is now. Raises: NotFound."""
    answer = await page.get(f"{_COLLECTION}/{id}")
    return _Target(id, answer.json, answer.header("etag") or "")


async def _form_page(page: PageContext, target: _Target) -> Response:
    if not page.caller.writes_somewhere:
        raise Forbidden(caller=page.caller.name)
    if page.request.method != "POST":
        return await _show(page, target)
    form = await read_upload(page.request, page.receive)
    if form.kept:  # a sign-in was in between
        form = Form(form.kept, {})
        return await _show(page, target._replace(tag=form.get(_TAG)), form)
    target = target._replace(tag=form.get(_TAG))  # not the present one, which would hide a change of others
    try:
        document = document_of(form, target.stored)
        if "preview" in form.fields:
            body = preview_body(document) | {"limit": _PREVIEWED}
            return await _show(page, target, form, preview=(await page.send("POST", _PREVIEW, body=body)).json)
        return await _save(page, target, form, document)
    except InvalidField as error:
        return await _show(page, target, form, 400, errors={error.name: str(error)})
    except (NotFound, Forbidden):
        raise
    except PreconditionFailed as problem:
        return await _conflict(page, target, form, problem)
    except Problem as problem:
        alert, field = shown_problem(problem, page.asked), refused_field(problem)
        errors = {field: alert.detail or alert.title} if field else {}
        return await _show(page, target, form, problem.status, errors=errors, alert=alert)


async def _save(page: PageContext, target: _Target, form: Form, document: Mapping[str, Any]) -> Response:
    if target.id is None:
        answer = await page.send("POST", _COLLECTION, body=dict(document))
        return page.saved(f"subscriptions/{answer.json['id']}", answer)
    condition = [(b"if-match", form.get(_TAG).encode("latin-1", "replace"))]
    answer = await page.send("PUT", f"{_COLLECTION}/{target.id}", body=dict(document), headers=condition)
    return page.saved(f"subscriptions/{target.id}", answer)


async def _conflict(page: PageContext, target: _Target, form: Form, problem: PreconditionFailed) -> Response:
    """The form next to what is stored now, which a second save replaces."""
    alert = shown_problem(problem, page.asked)._replace(title=_CHANGED, detail="", cure="")
    if target.id is not None:
        target = await _read_target(page, target.id)
    differences = stored_differences(document_of(form, target.stored), target.stored)
    return await _show(page, target, form, problem.status, title="Conflict", alert=alert, differences=differences)


async def _show(
    page: PageContext,
    target: _Target,
    form: Form | None = None,
    status: int = 200,
    title: str = "",
    **values: Any,
) -> Response:
    """The page. form: that was sent. values: what the template shows beyond the fields."""
    options = (await page.send("OPTIONS", _COLLECTION)).json
    return await page.render(
        "subscriptions/form.html",
        title or target.title,
        status,
        name=target.title,
        texts=texts_of(target.stored) if form is None else texts_of_form(form),
        needs_credential=form is not None and has_credential(form),
        protocols=list(options["protocols"]),
        tag=target.tag,
        is_new=target.id is None,
        cancel=page.link(target.back),
        **{**_NOTHING_SENT, **values},
    )
