"""Deletions by number, and pruned Versions that are retained until then (LEG-210, LEG-213, LEG-707)."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.access.roles import Role
from annals.domain.compat.errors import Conflict, NoSuchVersion
from annals.domain.decisions.commands import DeleteEntities, ReplaceModel, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context, Decision
from annals.domain.errors.problems import NotFound
from annals.domain.registry.events import EntityDeleted
from tests.support.compat_commands import C, G, M, S, delete, post, put_group, source
from tests.support.registries.memory import START, MemoryRegistry


@pytest.fixture
def registry() -> MemoryRegistry:
    """A registry with a message definition, whose Versions 1 and 2 are pruned and 3 is live, and a group of schemas."""
    found = MemoryRegistry(source(1))
    found.do(put_group(G, "Text/1"))
    found.do(put_group(C, "CloudEvents"))
    for number in range(1, 4):
        found.do(post(M, f"t {number}".encode(), description=f"the {number}."))
    return found


def outcomes(decision: Decision, below: str) -> dict[str, str]:
    """Returns for each changed entity at or below an xid the reason of its deletion, or else the kind of event."""
    return {
        event.xid.removeprefix(f"{below}/versions/"): getattr(event, "reason", type(event).__name__)
        for event in decision.events
        if event.xid.startswith(below)
    }


def retained_numbers(registry: MemoryRegistry, xid: str) -> list[int]:
    return [one.number for one in registry.world.publications.retained_versions(xid)]


def test_pruned_versions_are_retained(registry: MemoryRegistry) -> None:
    # LEG-707: with their attributes at the time of pruning
    assert retained_numbers(registry, M) == [1, 2]
    first, _ = registry.world.publications.retained_versions(M)
    assert registry.world.publications.pruned_entity(first).attributes["description"] == "the 1."
    assert list(registry.versions(M)) == ["3"]


def test_a_retained_version_is_forgotten(registry: MemoryRegistry) -> None:
    # LEG-707: its deletion makes one event, and nothing else changes
    decision = registry.do(delete(M, 1))
    [event] = decision.events
    assert isinstance(event, EntityDeleted)
    assert (event.xid, event.reason, event.private) == (f"{M}/versions/1", "forgotten", {"number": 1})
    assert retained_numbers(registry, M) == [2]
    with pytest.raises(NoSuchVersion):
        registry.do(delete(M, 1))


def test_the_live_version_is_replaced_by_the_highest_retained_one(registry: MemoryRegistry) -> None:
    # LEG-213: with its old attributes, except `modifiedat`
    before = registry.world.publications.pruned_entity(registry.world.publications.retained_versions(M)[1])
    decision = registry.do(delete(M, 3))
    assert outcomes(decision, M) == {"2": "EntityCreated", "3": "deleted", M: "EntityUpdated"}
    [entity] = registry.versions(M).values()
    assert entity.attributes | {"modifiedat": ""} == before.attributes | {"modifiedat": ""}
    assert (entity.private["facade"], retained_numbers(registry, M)) == (before.private["facade"], [1])


def test_with_the_last_one_the_definition_goes(registry: MemoryRegistry) -> None:
    # LEG-210: retained Versions count
    for number in (3, 2):
        registry.do(delete(M, number))
        assert registry.find(M)
    assert outcomes(registry.do(delete(M, 1)), M) == {M: "deleted", "1": "deleted"}


def test_no_version_comes_back_while_another_lives() -> None:
    # LEG-213: no retained Version is created again while the definition has a live one
    registry = MemoryRegistry(source(2))
    registry.do(put_group(C, "CloudEvents"))
    for number in range(1, 5):
        registry.do(post(M, f"t {number}".encode()))
    registry.do(delete(M, 4))
    assert (list(registry.versions(M)), retained_numbers(registry, M)) == (["3"], [1, 2])


@pytest.mark.parametrize(
    "command", [delete(M), delete(C), DeleteEntities(M), DeleteEntities(C), DeleteEntities(f"{C}/messages")]
)
def test_retained_versions_go_with_their_definition(registry: MemoryRegistry, command: DeleteEntities) -> None:
    # LEG-707: whichever API deletes it
    decision = registry.do(command)
    found = {event.xid[-1]: event.reason for event in decision.events if isinstance(event, EntityDeleted)}
    assert {id: found[id] for id in "123"} == {"1": "forgotten", "2": "forgotten", "3": "deleted"}
    assert retained_numbers(registry, C) == []


def test_the_registry_itself_deletes_the_last_one_with_its_definition(registry: MemoryRegistry) -> None:
    # ENT-108, LEG-707: xRegistry clients see no other Version, so none comes back
    decision = registry.do(DeleteEntities(f"{M}/versions/3"))
    assert outcomes(decision, M) == {M: "deleted", "1": "forgotten", "2": "forgotten", "3": "deleted"}


def test_a_pointer_has_no_versions_of_its_own(registry: MemoryRegistry) -> None:
    # ENT-132, LEG-1207: not even retained ones; and the legacy APIs refuse to write to it
    decision = registry.do(WriteTree(f"{M}/meta", {"xref": f"{C}/messages/other"}, WriteMethod.PUT))
    assert outcomes(decision, M) == {M: "EntityUpdated", "1": "forgotten", "2": "forgotten", "3": "deleted"}
    for command in (delete(M, 3), post(M, b"t 4")):
        with pytest.raises(Conflict):
            registry.do(command)


def test_a_higher_limit_brings_nothing_back(registry: MemoryRegistry) -> None:
    # LEG-1204: pruned Versions stay pruned; new Versions are live in both APIs
    registry.do(ReplaceModel(source(0)))
    registry.do(post(M, b"t 4"))
    assert (list(registry.versions(M)), retained_numbers(registry, M)) == (["3", "4"], [1, 2])


@pytest.mark.parametrize(("command", "problem"), [(delete(S, 1), NotFound), (delete(M, 4), NoSuchVersion)])
def test_what_is_not_there(registry: MemoryRegistry, command: DeleteEntities, problem: type[Exception]) -> None:
    # LEG-200 (S12, M12): 404
    with pytest.raises(problem):
        registry.do(command)


@pytest.mark.parametrize("meta", [{"readonly": True}, {"deprecated": {"removal": "2999-01-01T00:00:00Z"}}])
@pytest.mark.parametrize("command", [delete(M), delete(C)])
def test_what_protects_a_definition_is_a_conflict(
    registry: MemoryRegistry, meta: dict[str, Any], command: DeleteEntities
) -> None:
    # LEG-211: the xRegistry API refuses it with 400 because of the state of the definition
    write = WriteTree(f"{M}/meta", meta, WriteMethod.PATCH)
    decision = decide(write, registry.world, Context(START, "admin", role=Role.ADMIN))
    registry.world.extend(decision.events)
    with pytest.raises(Conflict):
        registry.do(command)
