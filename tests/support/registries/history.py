"""Event logs built by hand: each call records one interaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from annals.domain.registry.events import (
    SALT,
    EntityCreated,
    EntityDeleted,
    EntityEvent,
    EntityRefreshed,
    EntityUpdated,
)
from annals.domain.registry.evolve import evolve
from annals.domain.values import xid as xids

START = datetime(2026, 1, 1, tzinfo=UTC)

Recorded = tuple[int, EntityEvent]


class History:
    """A log in memory. `recorded` has every event with its position, `ends` the last position of each interaction."""

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.ends: list[int] = []
        self.alive: dict[str, EntityEvent] = {}
        self._revisions: dict[str, int] = {}
        self._born: dict[str, int] = {}

    def record(self, *changes: tuple[str, dict[str, Any] | None], refresh: bool = False) -> list[Recorded]:
        """One interaction: an xid with its new attributes, or None to delete it."""
        first = len(self.recorded)
        for xid, attributes in changes:
            self._append(xid, attributes, refresh)
        self.ends.append(len(self.recorded))
        return self.recorded[first:]

    def alive_at(self, position: int) -> dict[str, tuple[int, EntityEvent]]:
        """The live entities at a position, by stream: a fold of the log up to it."""
        found: dict[str, tuple[int, EntityEvent]] = {}
        for at, event in self.recorded[:position]:
            found.pop(event.stream, None)
            if evolve(event) is not None:
                found[event.stream] = at, event
        return found

    def _append(self, xid: str, attributes: dict[str, Any] | None, refresh: bool) -> None:
        stream = xids.stream(xid)
        before = self.alive.get(stream)
        revision = self._revisions[stream] = self._revisions.get(stream, 0) + 1
        changed = EntityRefreshed if refresh else EntityUpdated
        kind = EntityDeleted if attributes is None else changed if before else EntityCreated
        event = kind(
            xid=xid,
            type=xids.type_of(xid),
            revision=revision,
            epoch=before.epoch + (kind is EntityUpdated) if before else 1,
            attributes=attributes or {},
            private=_private(attributes),
            born=self._born[stream] if before and attributes is not None else None,
            xregcorrelationid=f"c{len(self.ends)}",
            time=START + timedelta(seconds=len(self.ends)),
        )
        self.recorded.append((len(self.recorded) + 1, event))
        if before is None:
            self._born[stream] = len(self.recorded)
        if attributes is None:
            del self.alive[stream]
        else:
            self.alive[stream] = event


def _private(attributes: dict[str, Any] | None) -> dict[str, Any]:
    if attributes is None:
        return {}
    return {SALT: "salt"} | ({"document": attributes["doc"]} if "doc" in attributes else {})
