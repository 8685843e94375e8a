"""What the handlers of link requests share: their dependencies, checks, and JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals.api.registry.open_registry import Registry
from annals.api.replication.wiring import PassiveReplication
from annals.commands.store.clock import parse_time
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden
from annals.domain.replication.link import COLLECTION, Link
from annals.domain.replication.link_document import PROPERTIES
from annals.projections.entities.view import View
from annals.projections.replication.cycles import UPSTREAM_KEY
from annals.projections.replication.link_state import NOTIFIED_KEY, LinkProgress
from annals.projections.replication.log.ingest import READ_STATE_KEY
from annals.projections.replication.log.link_status import COMPARED_AT_KEY, DIFFERS, UNKNOWN
from annals.projections.replication.log.widened_scope import COMPLETE_KEY
from annals.projections.replication.standard.push import SENT_KEY

#: The states of a link.
LINK_STATES: Final = ("active", "resting", "failing", "diverged", "promoted")
#: Members of a stored status that a response shows in another form or not at all.
_HIDDEN_KEYS: Final = (
    "taken",
    "diverged",
    NOTIFIED_KEY,
    UPSTREAM_KEY,
    COMPLETE_KEY,
    READ_STATE_KEY,
    SENT_KEY,
    COMPARED_AT_KEY,
)
#: Maximum size of a link document in bytes.
MAX_LINK_BODY: Final = 1 << 16


def _ignore_change() -> None:
    """The default listener, which does nothing."""


@dataclass(frozen=True, slots=True)
class LinkApiContext:
    """The dependencies of the link handlers.

    replication: runs the links. on_change: called after a link has changed.
    """

    registry: Registry
    replication: PassiveReplication
    on_change: Callable[[], None] = _ignore_change


def check_admin(caller: Caller) -> None:
    """Checks that the caller is an administrator. Raises: Forbidden."""
    if not caller.is_admin:
        raise Forbidden(caller=caller.name)


def find_link(view: View, id: str) -> Link:
    """A link. Raises: NotFound."""
    link = view.links.get(id)
    if link is None:
        raise problems.NotFound(f"{COLLECTION}/{id}")
    return link


def link_document(link: Link) -> dict[str, Any]:
    """The response body of a link without its status."""
    attributes: Mapping[str, Any] = link.attributes
    return {"id": link.id, **{name: attributes[name] for name in PROPERTIES if name in attributes}}


def link_status_document(link: Link, progress: LinkProgress) -> dict[str, Any]:
    """The status of a link: state, position, lag, whether both ends are equal, and the last error."""
    stored_members = {name: value for name, value in progress.status.items() if name not in _HIDDEN_KEYS}
    status: dict[str, Any] = {"state": link_state_name(link, progress), "position": progress.cursor or 0}
    if (lag := replication_lag(progress)) is not None:
        status["lag"] = lag
    if link.follows_log:
        status["verdict"] = UNKNOWN
    return {**status, **stored_members}


def link_state_name(link: Link, progress: LinkProgress) -> str:
    """The state of a link, one of `LINK_STATES`."""
    if link.is_promoted:
        return "promoted"
    if not link.is_enabled:
        return "resting"
    has_imported = progress.cursor is not None  # before, registries may differ
    if progress.status.get("diverged") or (has_imported and progress.status.get("verdict") == DIFFERS):
        return "diverged"
    return "failing" if progress.status.get("error") else "active"


def replication_lag(progress: LinkProgress) -> dict[str, Any] | None:
    """The part of the other log that this registry does not have, as of the last read.

    positions: number of log positions. seconds: from the last received interaction to the end of the other log. None if
    the link has never read the other log.
    """
    head, read_at = progress.status.get("head"), progress.status.get("taken")
    if not isinstance(head, dict):
        return None
    missing_positions = max(0, head["position"] - (progress.cursor or 0))
    if not missing_positions:
        return {"positions": 0, "seconds": 0}
    if not head.get("time") or not read_at:
        return {"positions": missing_positions}
    return {
        "positions": missing_positions,
        "seconds": max(0.0, (parse_time(head["time"]) - parse_time(read_at)).total_seconds()),
    }
