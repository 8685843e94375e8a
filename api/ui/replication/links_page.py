"""The pages of replication links: their list, and one of them with its state (UI-56, UI-113)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.confirm import Confirmation, confirm_page
from annals.api.ui.forms import read_form
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import shown_problem
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import BadRequest, NotFound, Problem
from annals.domain.values.json_text import unquoted

_ACTIONS: Final = ("check", "pause", "resume")
#: Members of a status that the page shows elsewhere.
_OWN_ROWS: Final = ("state", "lag")
#: Members of a status with a time: seconds since 1970, or text.
_TIMES: Final = ("lastcontact", "checked", "failed", "taken")
#: Members of a status that have members, and what the page calls these.
_NAMES: Final = {
    "head": {"position": "end of the other log", "time": "time of that end"},
    "compared": {"position": "compared position", "here": "hash here", "there": "hash there"},
    "repair": {"entities": "last repair", "before": "hash before the repair", "after": "hash after the repair"},
}
#: The command that makes the first link.
_COMMAND: Final = "annals replicate add --id copy --remote https://other.example"


class StatusRow(NamedTuple):
    """A member of a link's status. is_time: whether the text is a time of the API."""

    name: str
    text: str
    is_time: bool = False


class LinkRow(NamedTuple):
    """One link. behind: the lag as text; conflicts: None where the link counts none."""

    id: str
    url: str
    state: str
    behind: str
    verdict: str
    conflicts: int | None
    error: str


async def links_page(page: PageContext) -> Response:
    """The list of links. Raises: Forbidden."""
    found, pages = await page.get_list("/-/links")
    rows = [_row(page, each) for each in found]
    return await page.render("replication/links.html", "Replication", rows=rows, pages=pages, command=_COMMAND)


async def link_page(page: PageContext) -> Response:
    """One link. Raises: NotFound, Forbidden, BadRequest."""
    id, alert, status = page.path_params["id"], None, 200
    if page.request.method == "POST":
        action = (await read_form(page.request, page.receive)).get("action", "")
        if action not in _ACTIONS:
            raise BadRequest(error_detail='the field "action" names no action')
        try:
            query = {"count": ""} if action == "check" else None
            answer = await page.send("POST", f"/-/links/{id}/actions/{action}", query)
        except (NotFound, Forbidden):
            raise
        except Problem as problem:
            alert, status = shown_problem(problem, page.asked), problem.status
        else:
            path = f"links/{id}"
            return page.redirect(path) if action == "check" else page.saved(path, answer)
    link = (await page.get(f"/-/links/{id}")).json
    return await page.render(
        "replication/link.html",
        f"Link {id}",
        status,
        row=_row(page, link),
        rows=list(_status_rows(link["status"])),
        settings={name: value for name, value in link.items() if name not in ("id", "status")},
        own_path=f"links/{id}",
        alert=alert,
    )


async def promote_page(page: PageContext) -> Response:
    """The page that promotes a link. Raises: NotFound."""
    id = page.path_params["id"]
    link = (await page.get(f"/-/links/{id}")).json
    scope = unquoted(link["scope"]) if link.get("scope") else "the whole registry"
    confirmation = Confirmation(
        title=f"Promote link {id}",
        button="Promote",
        effects=(
            f"The link ends: it copies nothing more, and cannot be resumed. 1 link: {id}.",
            f"Clients of this registry can write what it copied: {scope}.",
        ),
        cancel=f"links/{id}",
        done=f"links/{id}",
        act=lambda: page.send("POST", f"/-/links/{id}/actions/promote"),
        is_dangerous=True,
    )
    return await confirm_page(page, confirmation)


async def repair_page(page: PageContext) -> Response:
    """The page that repairs a link. Raises: NotFound."""
    id = page.path_params["id"]
    link = (await page.get(f"/-/links/{id}")).json
    confirmation = Confirmation(
        title=f"Repair link {id}",
        button="Repair",
        effects=(
            *_repair_effects(link["status"]),
            "Each entity that differs gets the state that the other registry has. The history keeps what is replaced.",
        ),
        cancel=f"links/{id}",
        done=f"links/{id}",
        act=lambda: page.send("POST", f"/-/links/{id}/actions/repair"),
    )
    return await confirm_page(page, confirmation)


def _repair_effects(status: Mapping[str, Any]) -> Iterator[str]:
    """How many entities change, and the hashes of both registries, as the last check found them."""
    count = status.get("differences")
    if count is None:
        yield "It is not known how many entities change. Check, on the page of the link, counts them first."
        return
    first = (status.get("difference") or {}).get("xid")
    yield f"{count} entities change{f', the first of them {first}' if first else ''}, as of the last check."
    if compared := status.get("compared"):
        yield (
            f"At position {compared['position']} of the other registry, its hash is {compared['there']}; the hash of"
            f" this registry is {compared['here']} now, and will be the same."
        )


def _status_rows(status: Mapping[str, Any]) -> Iterator[StatusRow]:
    """The members of a status; members of the other log's end, of hashes and of the last repair one by one."""
    for name, value in status.items():
        if name in _NAMES:
            for member, text in _NAMES[name].items():
                yield StatusRow(text, unquoted(value[member]), member == "time" and bool(value[member]))
        elif name in _TIMES:
            time = value if isinstance(value, str) else datetime.fromtimestamp(value, UTC).isoformat()
            yield StatusRow(name, time, is_time=True)
        elif name not in _OWN_ROWS:
            yield StatusRow(name, unquoted(value))


def _row(page: PageContext, link: Mapping[str, Any]) -> LinkRow:
    status: Mapping[str, Any] = link["status"]
    error = status.get("error")
    return LinkRow(
        link["id"],
        page.link(f"links/{link['id']}"),
        status["state"],
        _behind_text(status.get("lag")),
        status.get("verdict", ""),
        status.get("conflictscount", len(status.get("conflicts", ()))) or None,
        error if isinstance(error, str) else str(error.get("message", error)) if isinstance(error, dict) else "",
    )


def _behind_text(lag: Mapping[str, Any] | None) -> str:
    if lag is None:
        return ""
    seconds = f", {lag['seconds']:.0f} seconds" if "seconds" in lag else ""
    return f"{lag['positions']} positions{seconds}"
