"""The page of API keys, and those that rotate and revoke one (UI-39, UI-59, UI-121)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.access.member_form import MemberForm
from annals.api.ui.access.shown_key import read_new_key, with_new_key, without_new_key
from annals.api.ui.confirm import Confirmation, confirm_page
from annals.api.ui.forms import Form, read_upload
from annals.api.ui.local_times import moment_of_field
from annals.api.ui.page_context import PageContext
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import NotAvailable, NotFound, Problem

_KEYS: Final = "/-/keys"
_PATH: Final = "keys"
_LABELS: Final = {"name": "Name", "role": "Role", "groups": "Groups", "expires": "Expires"}
_ROTATION_LABELS: Final = {"grace": "Grace seconds"}


class KeyRow(NamedTuple):
    """One key. groups: a line `<place>=<role>` each. last_used: empty for never."""

    id: str
    name: str
    role: str
    groups: list[str]
    expires: str
    last_used: str


async def keys_page(page: PageContext) -> Response:
    """The page. Raises: Forbidden."""
    form, status = MemberForm(_LABELS), 200
    if page.request.method == "POST":
        sent = await read_upload(page.request, page.receive)
        form = MemberForm(_LABELS, sent.kept or sent.fields)
        try:
            if not sent.kept:  # no sign-in was in between
                answer = await page.send("POST", _KEYS, body=_document(sent))
                return with_new_key(page.saved(_PATH, answer), page.request, answer.json["key"])
        except Forbidden:
            raise
        except Problem as problem:
            form, status = form.refused(page, problem), problem.status
    try:
        keys, pages = await page.get_list(_KEYS)
    except NotAvailable:
        return await page.render("access/no_keys.html", "API keys")
    new_key = read_new_key(page.request)
    response = await page.render(
        "access/keys.html",
        "API keys",
        status,
        rows=[_row(each) for each in keys],
        pages=pages,
        form=form,
        new_key=new_key,
        new_name=await _name(page, new_key.id) if new_key else "",
    )
    return without_new_key(response, page.request) if new_key else response


async def rotate_page(page: PageContext) -> Response:
    """The page that gives a key a new text. Raises: Forbidden, NotFound."""
    key = await _read_key(page)
    form, status = MemberForm(_ROTATION_LABELS, {"grace": "0"}), 200
    if page.request.method == "POST":
        sent = await read_upload(page.request, page.receive)
        form = MemberForm(_ROTATION_LABELS, sent.fields)
        grace = sent.get("grace").strip()
        try:
            is_number = grace.isascii() and grace.isdecimal() and len(grace) < 19
            body = {"grace": int(grace) if is_number else grace}
            answer = await page.send("POST", f"{_KEYS}/{key['id']}/actions/rotate", body=body)
        except (Forbidden, NotFound):
            raise
        except Problem as problem:
            form, status = form.refused(page, problem), problem.status
        else:
            return with_new_key(page.saved(_PATH, answer), page.request, answer.json["key"])
    return await page.render("access/rotate.html", f"Rotate {key['name']}", status, key=key, form=form)


async def revoke_key_page(page: PageContext) -> Response:
    """The page that ends a key. Raises: Forbidden, NotFound."""
    key = await _read_key(page)
    used = f"It was last used at {key['lastused']['time']}." if "lastused" in key else "It has not been used yet."
    confirmation = Confirmation(
        title=f"Revoke {key['name']}",
        button="Revoke",
        effects=(f"1 key ends: requests with it are refused from now on. {used}", "It cannot be brought back."),
        cancel=_PATH,
        done=_PATH,
        act=lambda: page.send("DELETE", f"{_KEYS}/{key['id']}"),
        is_dangerous=True,
    )
    return await confirm_page(page, confirmation)


async def _name(page: PageContext, id: str) -> str:
    """The name of a new key; empty if it is not there any more, or not the caller's."""
    try:
        name: str = (await page.get(f"{_KEYS}/{id}")).json["name"]
    except Problem:
        return ""
    return name


async def _read_key(page: PageContext) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (await page.get(f"{_KEYS}/{page.path_params['id']}")).json
    return found


def _document(form: Form) -> dict[str, Any]:
    """The members of a new key; those that were left empty are not there."""
    groups = _groups(form.get("groups"))
    members = {
        "name": form.get("name").strip(),
        "role": form.get("role"),
        "groups": groups,
        "expires": moment_of_field(form.get("expires")),
    }
    return {name: value for name, value in members.items() if value}


def _groups(text: str) -> dict[str, str]:
    """Roles by place. A line without a role has an empty one, which the API refuses by its place."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = [line.rpartition("=") if "=" in line else (line, "=", "") for line in lines]
    return {place.strip(): role.strip() for place, _, role in pairs}


def _row(key: Mapping[str, Any]) -> KeyRow:
    return KeyRow(
        key["id"],
        key["name"],
        key.get("role", ""),
        [f"{place}={role}" for place, role in key.get("groups", {}).items()],
        key["expires"],
        key.get("lastused", {}).get("time", ""),
    )
