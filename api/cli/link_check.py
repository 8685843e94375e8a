"""`annals replicate status --check`: compares links with their other ends and reports problems."""

from __future__ import annotations

from typing import Any, NamedTuple

from annals.api.cli.surface_client import SurfaceClient
from annals.domain.errors.http_errors import InvalidLink, RemoteUnavailable
from annals.domain.replication.link import COLLECTION
from annals.projections.replication.log.link_status import EQUAL, UNKNOWN


class LinkCheck(NamedTuple):
    """A link after a comparison. failure: the reason for a non-zero exit code; None if there is none."""

    link: dict[str, Any]
    failure: str | None


def check_link(client: SurfaceClient, id: str) -> LinkCheck:
    """A link, compared with its other end now. The verdict is `unknown` if the comparison fails. Raises: NotFound."""
    try:
        link = client.request("POST", COLLECTION, id, "actions", "check")
    except RemoteUnavailable as problem:
        link = client.request("GET", COLLECTION, id)
        link["status"] |= {"verdict": UNKNOWN, "error": problem.text()}
    except InvalidLink:  # its other end has no hashes
        link = client.request("GET", COLLECTION, id)
    return LinkCheck(link, _failure(id, link["status"]))


def _failure(id: str, status: dict[str, Any]) -> str | None:
    """What is wrong with a link; None if nothing is.

    After a promotion, copied entities belong to this registry, and a link that pushes copies nothing to this registry.
    """
    verdict = status.get("verdict", EQUAL)
    if verdict == EQUAL or status["state"] == "promoted":
        return None
    return f"{id} cannot be compared" if verdict == UNKNOWN else f"{id} {verdict}"
