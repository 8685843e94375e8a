"""`annals replicate status --check`: links compared with their other ends, and what is wrong with them."""

from __future__ import annotations

from typing import Any, NamedTuple

from api.cli.surface_client import SurfaceClient
from domain.errors.http_errors import InvalidLink, RemoteUnavailable
from domain.replication.link import COLLECTION
from projections.replication.link_status import EQUAL, UNKNOWN


class LinkCheck(NamedTuple):
    """A link once it has been compared. wrong: what the exit code is for; None where nothing is."""

    link: dict[str, Any]
    wrong: str | None


def check_link(console: SurfaceClient, id: str) -> LinkCheck:
    """A link, compared with its other end now. Its verdict is `unknown` where that cannot be done. Raises: NotFound."""
    path = f"{COLLECTION}/{id}"
    try:
        found = console.ask("POST", f"{path}/actions/check")
    except RemoteUnavailable as problem:
        found = console.ask("GET", path)
        found["status"] |= {"verdict": UNKNOWN, "error": problem.text()}
    except InvalidLink:  # its other end has no hashes
        found = console.ask("GET", path)
    return LinkCheck(found, _wrong(id, found["status"]))


def _wrong(id: str, status: dict[str, Any]) -> str | None:
    """What a link brought is this registry's own after a promotion, and a link that pushes brings nothing."""
    verdict = status.get("verdict", EQUAL)
    if verdict == EQUAL or status["state"] == "promoted":
        return None
    return f"{id} cannot be compared" if verdict == UNKNOWN else f"{id} {verdict}"
