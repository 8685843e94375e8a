"""The page that restores a past state of an entity, which shows first what it would record (UI-46, UI-86)."""

from __future__ import annotations

from annals.api.http.response import Response
from annals.api.ui.edit.dry_runs import future_events
from annals.api.ui.page_context import PageContext
from annals.domain.errors.problems import BadRequest


async def restore_page(page: PageContext) -> Response:
    """The page. Raises: BadRequest without a moment, and what a restore answers."""
    xid = page.path_params.get("xid", "")
    if page.asof is None:
        raise BadRequest(error_detail='a restore needs "asof": a position of the log, a time or a correlation id')
    path, query = f"/-/restore/{xid}".rstrip("/"), {"asof": page.asof}
    if page.request.method == "POST":
        answer = await page.send("POST", path, query)
        return page.redirect(f"explore/{xid}", asof=None, saved=answer.correlation_id or "nothing")
    page.raw_json = f"/-/history/{xid}"
    answer = await page.send("POST", path, query | {"dryrun": ""})
    return await page.render(
        "edit/restore.html",
        f"Restore {xid.split('/')[-1] or 'registry'}",
        events=future_events(answer),
        cancel=page.link(f"explore/{xid}"),
    )
