"""A registry in memory for given/when/then tests: commands in, events out, a clock that advances with commands."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from annals.domain.decisions.commands import (
    Command,
    CreateRegistry,
    DeleteEntities,
    ReplaceModel,
    WriteMethod,
    WriteTree,
)
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context, Decision
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityEvent
from tests.support.registries.memory_world import MemoryWorld

START = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryRegistry:
    """Each command takes one second; `c1`, `c2` ... are the correlation ids."""

    def __init__(self, source: Mapping[str, Any] | None = None) -> None:
        self.world = MemoryWorld()
        self.log: list[EntityEvent] = []
        self.interactions = 0
        self.do(CreateRegistry("test", dict(source or {})))

    @property
    def now(self) -> str:
        """The time of the last command."""
        return (START + timedelta(seconds=self.interactions)).isoformat().replace("+00:00", "Z")

    def do(self, command: Command) -> Decision:
        """Decides a command and applies its events. Raises: Problem; then nothing has changed."""
        command = deepcopy(command)  # `decide` owns the tree of its command, and tests reuse theirs
        moment = START + timedelta(seconds=self.interactions + 1)
        decision = decide(command, self.world, Context(moment, f"c{self.interactions + 1}"))
        self.interactions += 1
        self.world.extend(decision.events, decision.documents)
        self.log.extend(decision.events)
        return decision

    def put(self, xid: str, tree: Mapping[str, Any], **flags: Any) -> Decision:
        return self.do(WriteTree(xid, tree, WriteMethod.PUT, **flags))

    def patch(self, xid: str, tree: Mapping[str, Any], **flags: Any) -> Decision:
        return self.do(WriteTree(xid, tree, WriteMethod.PATCH, **flags))

    def post(self, xid: str, tree: Mapping[str, Any], **flags: Any) -> Decision:
        return self.do(WriteTree(xid, tree, WriteMethod.POST, **flags))

    def delete(self, xid: str, targets: Mapping[str, Any] | None = None, **flags: Any) -> Decision:
        return self.do(DeleteEntities(xid, targets, **flags))

    def model(self, source: Mapping[str, Any]) -> Decision:
        return self.do(ReplaceModel(dict(source)))

    def get(self, xid: str) -> Entity:
        """The live entity with exactly this xid."""
        entity = self.find(xid)
        assert entity is not None, f"{xid} does not exist"
        return entity

    def find(self, xid: str) -> Entity | None:
        entity = self.world.get(xid)
        return entity if entity is not None and entity.xid == xid else None

    def meta(self, resource: str) -> dict[str, Any]:
        return dict(self.get(resource).attributes["meta"])

    def versions(self, resource: str) -> dict[str, Entity]:
        return {entity.id: entity for entity in self.world.members(resource + "/versions")}


def event_kinds(decision: Decision) -> dict[str, str]:
    """`{xid: kind}` of a decision's events, for instance `{"/": "updated", "/dirs/d1": "created"}`."""
    return {event.xid: type(event).__name__.removeprefix("Entity").lower() for event in decision.events}


def changed_attributes(decision: Decision, xid: str) -> set[str]:
    """The attributes that one event of a decision lists as changed."""
    return set(next(event for event in decision.events if event.xid == xid).changed)


def state_below(world: MemoryWorld, xid: str = "/") -> dict[str, Any]:
    """All entities at and below an xid with their documents, by xid, without attributes that each write changes."""
    found = {}
    for entity in world.entities():
        if entity.xid == xid or xid == "/" or entity.xid.startswith(xid + "/"):
            image = deepcopy(entity.attributes)
            for moving in (image, image.get("meta", {})):
                moving.pop("epoch", None)
                moving.pop("modifiedat", None)
            found[entity.xid] = image, entity.document
    return found


def past_state(registry: MemoryRegistry, position: int, xid: str = "/") -> dict[str, Any]:
    """What `state_below` was at a position of the log."""
    return state_below(MemoryWorld(registry.log[:position]), xid)


__all__ = ["START", "MemoryRegistry", "changed_attributes", "event_kinds", "past_state", "state_below"]
