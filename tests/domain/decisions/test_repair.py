"""Decisions about repairs of a copy: which events make the copy equal to the source."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import ControlLink, LinkCommand, Repair, WriteLink
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context, Decision
from annals.domain.errors.http_errors import Diverged
from annals.domain.errors.problems import NotFound, Problem
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.domain.replication.link_document import parse_link
from annals.domain.values import xid as xids
from tests.support.registries.memory import START, MemoryRegistry

SOURCE: dict[str, Any] = {
    "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "hasdocument": True}}}}
}
LINK = "/-/links/l"
D, E, G = "/dirs/d", "/dirs/e", "/dirs/g"
V = f"{D}/files/f/versions/1"


def context(registry: MemoryRegistry, **more: Any) -> Context:
    moment = START + timedelta(seconds=registry.interactions + 1)
    return Context(moment, f"repair{registry.interactions}", position=len(registry.log), **more)


def link(registry: MemoryRegistry, command: LinkCommand) -> None:
    """Applies a command about a link, from an administrator."""
    found = decide(command, registry.world, context(registry, role=Role.ADMIN))
    registry.world.extend(found.events)
    registry.log.extend(found.events)


def pair(**members: Any) -> tuple[MemoryRegistry, MemoryRegistry]:
    """Returns two registries with a common past: `here` with a change, a deletion, an addition; `there` an addition."""
    here, there = MemoryRegistry(SOURCE), MemoryRegistry(SOURCE)
    for registry in (here, there):
        registry.put(V, {"name": "one"}, document=b"one")
        registry.put(E, {"name": "e"})
    here.patch(V, {"name": "stray"})
    here.delete(E)
    here.put(G, {"name": "own"})
    there.put(f"{D}/files/later", {"name": "later"}, document=b"later")
    found = parse_link({"url": "https://there.example", **members})
    link(here, WriteLink(LINK, True, found.attributes))
    return here, there


def command(here: MemoryRegistry, there: MemoryRegistry) -> Repair:
    """Returns the repair that follows from a comparison of both registries."""
    last: dict[str, EntityEvent] = {event.stream: event for event in there.log}
    own = {event.stream: event.xid for event in here.log if not xids.is_outside_tree(event.stream)}
    gone = tuple(xid for stream, xid in own.items() if stream not in last)
    return Repair(LINK, len(here.log), tuple(last.values()), gone, {"0" * 64: b"later"})


def apply_repair(here: MemoryRegistry, repair: Repair) -> Decision:
    found = decide(repair, here.world, context(here, caller=Caller("l", link="l"), role=Role.ADMIN))
    here.world.extend(found.events, found.documents)
    return found


def images(registry: MemoryRegistry) -> dict[str, Any]:
    """Returns the live entities in the form that the state hash uses."""
    living = (each for each in registry.world.entities() if not xids.is_outside_tree(xids.stream(each.xid)))
    return {each.xid: (each.type, each.epoch, each.attributes, each.private) for each in living}


def test_a_repair_restores_the_state_of_the_source() -> None:
    # LEG-913: the same entities with the same images as at the source; one event for each entity, parents first
    here, there = pair()
    births = {event.xid: here.world.get(event.xid) for event in here.log}
    decision = apply_repair(here, command(here, there))
    assert images(here) == images(there)
    kinds = {event.xid: type(event) for event in decision.events}
    assert kinds[V] is EntityUpdated and kinds[E] is EntityCreated and kinds[G] is EntityDeleted
    assert kinds[f"{D}/files/later"] is EntityCreated
    assert [event.xid for event in decision.events] == sorted(kinds, key=xids.event_order)
    changed = {event.xid: event.changed for event in decision.events}
    assert changed[V] == ("epoch", "modifiedat", "name") and changed[E] == ()
    entity = births[V]
    assert entity is not None and next(event for event in decision.events if event.xid == V).born == entity.born
    assert {event.xregcorrelationid for event in decision.events} == {f"repair{here.interactions}"}
    assert dict(decision.documents) == {"0" * 64: b"later"}


def test_a_partial_repair_stays_in_its_part() -> None:
    # LEG-913: entities outside the scope do not change; the registry entity gets the new number of Groups
    here, there = pair(scope={"groups": [E]})
    before = images(here)
    decision = apply_repair(here, command(here, there))
    assert [(event.xid, type(event)) for event in decision.events] == [("/", EntityRefreshed), (E, EntityCreated)]
    after = images(here)
    assert after.pop(E) == images(there)[E]
    root = after.pop("/")
    assert root[2]["dirscount"] == before.pop("/")[2]["dirscount"] + 1
    assert after == before


def test_writes_elsewhere_do_not_matter() -> None:
    # LEG-913: what is written beside a scope during the comparison does not refuse a repair
    here, there = pair(scope={"groups": [E]})
    repair = command(here, there)
    here.patch(G, {"name": "later"})
    link(here, ControlLink(LINK, "pause"))
    apply_repair(here, repair)
    assert images(here)[E] == images(there)[E]


@pytest.mark.parametrize(
    ("members", "done", "late", "problem"),
    [
        ({}, "", 2, Diverged),  # another write since then
        ({"scope": {"groups": [G]}}, "", 2, Diverged),
        ({}, "promote", 0, NotFound),
        ({"mode": "push"}, "", 0, NotFound),
        ({"dialect": "xregistry"}, "", 0, NotFound),
    ],
)
def test_invalid_repairs_are_refused(members: dict[str, Any], done: str, late: int, problem: type[Problem]) -> None:
    # LEG-909: only for links that follow the log of the source, as long as they do; a repair that does not know the
    # latest writes is refused
    here, there = pair(**members)
    if done:
        link(here, ControlLink(LINK, done))
    repair = command(here, there)
    with pytest.raises(problem):
        apply_repair(here, Repair(LINK, repair.position - late, repair.entities, repair.deleted_xids))
