"""The pages that make and edit a subscription (UI-54), with a preview over the past (UI-110)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.forms import Form, read_upload
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.api.ui.subscriptions.preview import preview_body
from annals.api.ui.subscriptions.subscription_form import (
    InvalidField,
    document_of,
    refused_field,
    texts_of,
    texts_of_form,
)
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotFound, Problem

_COLLECTION: Final = "/subscriptions"
_PREVIEW: Final = "/-/subscriptions/preview"
_PREVIEWED: Final = 50
_TAG: Final = "tag"


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
    id = page.path_params["id"]
    answer = await page.get(f"{_COLLECTION}/{id}")
    return await _form_page(page, _Target(id, answer.json, answer.header("etag") or ""))


async def _form_page(page: PageContext, target: _Target) -> Response:
    if not page.caller.writes_somewhere:
        raise Forbidden(caller=page.caller.name)
    if page.request.method != "POST":
        return await _show(page, target, texts_of(target.stored))
    form = await read_upload(page.request, page.receive)
    texts, is_preview = texts_of_form(form), "preview" in form.fields
    try:
        document = document_of(form, target.stored)
        if is_preview:
            body = preview_body(document) | {"limit": _PREVIEWED}
            found = (await page.send("POST", _PREVIEW, body=body)).json
            return await _show(page, target, texts, preview=found)
        return await _save(page, target, form, document)
    except InvalidField as error:
        return await _show(page, target, texts, errors={error.name: str(error)}, status=400)
    except (NotFound, Forbidden):
        raise
    except Problem as problem:
        alert, field = shown_problem(problem, page.request), refused_field(problem)
        errors = {field: alert.detail or alert.title} if field else {}
        return await _show(page, target, texts, errors=errors, alert=alert, status=problem.status)


async def _save(page: PageContext, target: _Target, form: Form, document: Mapping[str, Any]) -> Response:
    if target.id is None:
        answer = await page.send("POST", _COLLECTION, body=dict(document))
        return page.saved(f"subscriptions/{answer.json['id']}", answer)
    condition = [(b"if-match", form.get(_TAG).encode("latin-1", "replace"))]
    answer = await page.send("PUT", f"{_COLLECTION}/{target.id}", body=dict(document), headers=condition)
    return page.saved(f"subscriptions/{target.id}", answer)


async def _show(
    page: PageContext,
    target: _Target,
    texts: Mapping[str, str],
    errors: Mapping[str, str] | None = None,
    alert: ShownProblem | None = None,
    preview: Mapping[str, Any] | None = None,
    status: int = 200,
) -> Response:
    options = (await page.send("OPTIONS", _COLLECTION)).json
    return await page.render(
        "subscriptions/form.html",
        target.title,
        status,
        texts=texts,
        errors=errors or {},
        alert=alert,
        preview=preview,
        protocols=list(options["protocols"]),
        tag=target.tag,
        is_new=target.id is None,
        cancel=page.link(target.back),
    )
