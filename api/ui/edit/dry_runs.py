"""Dry runs of writes, whose events pages show before anything is recorded (UI-83)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.api.ui.own_api import ApiAnswer

_ACTIONS: Final = {"EntityCreated": "created", "EntityUpdated": "updated", "EntityRefreshed": "refreshed"}
_DELETED: Final = "deleted"


class DryRunEvent(NamedTuple):
    """An event that a write would record."""

    position: int
    action: str
    xid: str
    changed: list[str]


@dataclass(frozen=True)
class FutureEvents:
    """The events that a write would record. count: of all of them; rows: the first ones."""

    count: int
    rows: list[DryRunEvent]


_MAX_ROWS: Final = 500


def future_events(answer: ApiAnswer) -> FutureEvents:
    """The events of the answer to a dry run."""
    found: list[dict[str, Any]] = answer.json or []
    events = [each for each in found if "topic" in each]
    rows = [
        DryRunEvent(each["position"], _action(each["topic"]), each["xid"], list(each.get("changed", ())))
        for each in events[:_MAX_ROWS]
    ]
    return FutureEvents(len(events), rows)


def _action(topic: str) -> str:
    return _ACTIONS.get(topic.partition(":")[0], _DELETED)
