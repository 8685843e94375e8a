"""What the surfaces of links share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from api.registry.open_registry import Registry
from commands.store.clock import parse_time
from domain.access.roles import Caller, Role
from domain.errors import problems
from domain.errors.http_errors import Forbidden
from domain.replication.link import COLLECTION, Link
from domain.replication.link_document import PROPERTIES
from projections.entities.query import View
from projections.replication.cycles import UPSTREAM_FACT
from projections.replication.link_state import NOTIFIED_FACT, LinkProgress
from projections.replication.link_status import DIFFERS, UNKNOWN
from projections.replication.standard.push import SENT_SCOPE_FACT
from projections.replication.widened_scope import COMPLETE_FACT

#: What becomes of a link.
LINK_STATES: Final = ("active", "resting", "failing", "diverged", "promoted")
#: Facts that are told in another form.
_INNER: Final = ("taken", "diverged", NOTIFIED_FACT, UPSTREAM_FACT, COMPLETE_FACT, SENT_SCOPE_FACT)
#: Bytes of the document of a link.
MAX_LINK_BODY: Final = 1 << 16


class ReplicationControl(Protocol):
    """What is known of links beside the log, and who runs them."""

    def progress(self, link: Link) -> LinkProgress:
        """How far a link is, and how it goes."""

    def wake(self, link: str, subjects: Sequence[str] = ()) -> None:
        """Has a link look at the other registry now. link: its id. subjects: what it is to look at, for links that take
        in single objects.
        """

    def receive(self, link: Link, after: int, lines: Iterable[bytes]) -> int:
        """Takes in a piece of another log; see `projections.replication.receive`."""

    def upstream(self) -> Mapping[str, Any]:
        """Which registry this is, and which ones it follows; see `projections.replication.cycles`."""

    def check_ring(self, link: Link, secrets: Mapping[str, str]) -> None:
        """Looks whether a link closes a ring, as far as the other registry answers. secrets: of the link, by name.

        Raises: InvalidLink.
        """

    def forget(self, link: str) -> None:
        """Removes what is known of a link that is no more. link: its id."""

    def check(self, link: Link) -> None:
        """Compares both registries now; what is known says what came out. Raises: RemoteError, InvalidLink."""

    def repair(self, link: Link) -> int:
        """Has this registry be what the other one is, in the link's scope; gives how many entities differed.

        Raises: RemoteError, BrokenFeed, InvalidLink, Diverged.
        """


def _nobody() -> None:
    """Nobody wants to be told."""


@dataclass(frozen=True, slots=True)
class LinkApiContext:
    """registry: whose links they are. replication: runs them. changed: is told when one of them is another one."""

    registry: Registry
    replication: ReplicationControl
    changed: Callable[[], None] = _nobody


def check_admin(caller: Caller) -> None:
    """Raises: Forbidden for everybody but administrators of the registry."""
    if caller.role is not Role.ADMIN:
        raise Forbidden(caller=caller.name)


def find_link(view: View, id: str) -> Link:
    """A link. Raises: NotFound."""
    found = view.links.one(id)
    if found is None:
        raise problems.NotFound(f"{COLLECTION}/{id}")
    return found


def link_document(link: Link) -> dict[str, Any]:
    """What an answer shows of a link, but for its status."""
    shown: Mapping[str, Any] = link.attributes
    return {"id": link.id, **{name: shown[name] for name in PROPERTIES if name in shown}}


def link_status_document(link: Link, progress: LinkProgress) -> dict[str, Any]:
    """How a link goes: its state, how far it is and behind, whether both ends are equal, and what went wrong last."""
    facts = {name: value for name, value in progress.facts.items() if name not in _INNER}
    found: dict[str, Any] = {"state": link_state_name(link, progress), "position": progress.cursor or 0}
    if (lag := replication_lag(progress)) is not None:
        found["lag"] = lag
    if link.follows_log:
        found["verdict"] = UNKNOWN
    return {**found, **facts}


def link_state_name(link: Link, progress: LinkProgress) -> str:
    """One of `STATES`."""
    if link.promoted:
        return "promoted"
    if not link.enabled:
        return "resting"
    if progress.facts.get("diverged") or progress.facts.get("verdict") == DIFFERS:
        return "diverged"
    return "failing" if progress.facts.get("error") else "active"


def replication_lag(progress: LinkProgress) -> dict[str, Any] | None:
    """How much of the other log is not here yet, as of the last look at it: positions, and the seconds from the last
    interaction that was taken in to the other log's end. None where nobody has looked.
    """
    head, taken = progress.facts.get("head"), progress.facts.get("taken")
    if not isinstance(head, dict):
        return None
    behind = max(0, head["position"] - (progress.cursor or 0))
    if not behind:
        return {"positions": 0, "seconds": 0}
    if not head.get("time") or not taken:
        return {"positions": behind}
    return {"positions": behind, "seconds": max(0.0, (parse_time(head["time"]) - parse_time(taken)).total_seconds())}
