"""The page "Import and export" (UI-62, UI-123).

With scripts, a browser sends the file to `/-/import` itself and shows how far it is. Without, the form does, and the
page waits for the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.edit.dry_runs import FutureEvents, future_events
from annals.api.ui.forms import Form, read_upload
from annals.api.ui.own_api import ApiAnswer
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import MissingBody, Problem

_PATH: Final = "transfer"
_DIALECTS: Final = ("xRegistry", "endpoint-1.0-rc2")
_PREVIEW: Final = "preview"
_COUNTS: Final = ("created", "updated", "deleted")
_NUMBER: Final = re.compile(r"[0-9]{1,12}\Z")


class ImportResult(NamedTuple):
    """What an import has done. counts: entities by what was done. report: changes of a document in an older format."""

    counts: Mapping[str, int]
    report: list[Mapping[str, Any]]


async def transfer_page(page: PageContext) -> Response:
    """The page."""
    if page.request.method != "POST":
        return await _show(page, result=_result_of_url(page))
    form = await read_upload(page.request, page.receive)
    dialect = form.get("dialect")
    try:
        answer = await _send(page, form, dialect, is_preview=form.get("action") == _PREVIEW)
    except Forbidden:
        raise
    except Problem as problem:
        return await _show(page, dialect, problem.status, alert=shown_problem(problem, page.asked))
    if form.get("action") == _PREVIEW:
        return await _show(page, dialect, events=future_events(answer))
    result = _result(answer)
    if result.report:  # no other page could show it again
        return await _show(page, dialect, result=result)
    counts = {name: str(count) for name, count in result.counts.items()}
    return page.redirect(_PATH, saved=answer.correlation_id or "nothing", **counts)


async def _send(page: PageContext, form: Form, dialect: str, *, is_preview: bool) -> ApiAnswer:
    file = form.files.get("file")
    if file is None or not file.content:
        raise MissingBody()
    query = {"dialect": dialect, "dryrun": "" if is_preview else None}
    return await page.send("POST", "/-/import", query, file.content)


def _result(answer: ApiAnswer) -> ImportResult:
    result = answer.json["result"]
    counts = {name: result[name] for name in _COUNTS} if result.keys() == set(_COUNTS) else {}
    return ImportResult(counts, answer.json["report"])


def _result_of_url(page: PageContext) -> ImportResult | None:
    """The result of the import that led to this page."""
    counts = {name: int(page.param(name)) for name in _COUNTS if _NUMBER.match(page.param(name))}
    return ImportResult(counts, []) if counts else None


async def _show(
    page: PageContext,
    dialect: str = "",
    status: int = 200,
    *,
    alert: ShownProblem | None = None,
    events: FutureEvents | None = None,
    result: ImportResult | None = None,
) -> Response:
    page.raw_json = page.raw_json or "/export"
    return await page.render(
        "transfer/transfer.html",
        "Import and export",
        status,
        dialect=dialect,
        dialects=_DIALECTS,
        may_import=page.caller.can_write("/"),
        alert=alert,
        events=events,
        result=result,
        path=page.param("path"),
        moment=page.param("moment"),
    )
