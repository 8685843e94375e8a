"""The page of grants, and the one that revokes a grant (UI-39, UI-60)."""

from __future__ import annotations

from typing import Final

from annals.api.http.response import Response
from annals.api.ui.access.member_form import MemberForm
from annals.api.ui.confirm import Confirmation, confirm_page
from annals.api.ui.forms import read_upload
from annals.api.ui.page_context import PageContext
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import Problem

_GRANTS: Final = "/-/grants"
_PATH: Final = "grants"
_LABELS: Final = {"subject": "Subject", "at": "Place", "role": "Role"}


async def grants_page(page: PageContext) -> Response:
    """The page. Raises: Forbidden."""
    form, status = MemberForm(_LABELS, {"at": "/"}), 200
    if page.request.method == "POST":
        sent = await read_upload(page.request, page.receive)
        form = MemberForm(_LABELS, sent.kept or sent.fields)
        members = {name: text for name in _LABELS if (text := sent.get(name).strip())}
        try:
            if not sent.kept:  # no sign-in was in between
                return page.saved(_PATH, await page.send("POST", _GRANTS, body=members))
        except Forbidden:
            raise
        except Problem as problem:
            form, status = form.refused(page, problem), problem.status
    rows, pages = await page.get_list(_GRANTS)
    return await page.render("access/grants.html", "Grants", status, rows=rows, pages=pages, form=form)


async def revoke_grant_page(page: PageContext) -> Response:
    """The page that takes a grant away. Raises: Forbidden, NotFound."""
    grant = (await page.get(f"{_GRANTS}/{page.path_params['id']}")).json
    confirmation = Confirmation(
        title=f"Revoke {grant['subject']} at {grant['at']}",
        button="Revoke",
        effects=(
            f"1 grant ends: {grant['subject']} is no longer {grant['role']} at {grant['at']} by it.",
            "What the settings, keys and other grants give stays.",
        ),
        cancel=_PATH,
        done=_PATH,
        act=lambda: page.send("DELETE", f"{_GRANTS}/{grant['id']}"),
        is_dangerous=True,
    )
    return await confirm_page(page, confirmation)
