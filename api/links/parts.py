"""What the surfaces of links share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from api.wiring import Registry
from domain import problems
from domain.links.link import COLLECTION, Link
from domain.links.properties import PROPERTIES
from domain.refusals import Forbidden
from domain.roles import Caller, Role
from projections.entities.query import View
from projections.replication.states import Progress

#: Bytes of the document of a link.
MOST: Final = 1 << 16


class Replication(Protocol):
    """What is known of links beside the log, and who runs them."""

    def progress(self, link: Link) -> Progress:
        """How far a link is, and how it goes."""

    def wake(self, link: str) -> None:
        """Has a link look at the other registry now. link: its id."""


@dataclass(frozen=True, slots=True)
class Parts:
    """registry: whose links they are. replication: runs them."""

    registry: Registry
    replication: Replication


def check_admin(caller: Caller) -> None:
    """Raises: Forbidden for everybody but administrators of the registry."""
    if caller.role is not Role.ADMIN:
        raise Forbidden(caller=caller.name)


def existing(view: View, id: str) -> Link:
    """A link. Raises: NotFound."""
    found = view.links.one(id)
    if found is None:
        raise problems.NotFound(f"{COLLECTION}/{id}")
    return found


def public(link: Link) -> dict[str, Any]:
    """What an answer shows of a link, but for its status."""
    shown: Mapping[str, Any] = link.attributes
    return {"id": link.id, **{name: shown[name] for name in PROPERTIES if name in shown}}


def status(link: Link, progress: Progress) -> dict[str, Any]:
    """How a link goes: its state, how far it is and what went wrong last."""
    return {"state": _state(link, progress), "position": progress.cursor or 0, **progress.facts}


def _state(link: Link, progress: Progress) -> str:
    if link.promoted:
        return "promoted"
    if not link.enabled:
        return "resting"
    if progress.facts.get("diverged"):
        return "diverged"
    return "failing" if progress.facts.get("error") else "active"
