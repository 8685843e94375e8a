"""Pruning with a stored version chain removes the same Versions as pruning that reads all Versions (ENT-104)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.decisions.commands import Command, CreateRegistry, DeleteEntities, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.rules.ancestry import MODES
from annals.domain.decisions.world import Context, Decision
from annals.domain.errors.problems import Problem
from tests.support.registries.memory_world import MemoryWorld

FILE = "/dirs/d/files/f"
IDS = st.sampled_from(["1.0.0", "1.1.0", "1.2.0", "1.10.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0", "6.0.0"])
ATTRIBUTES = st.fixed_dictionaries(
    {"name": st.sampled_from("ab")},
    optional={"createdat": st.sampled_from(["2020-01-01T00:00:00Z"]), "ancestorid": IDS},
)
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("put"), IDS, st.just({}))] * 4,
        st.tuples(st.just("put"), IDS, ATTRIBUTES),
        st.tuples(st.just("post"), st.sets(IDS, min_size=1, max_size=3), st.just({})),
        st.tuples(st.just("delete"), IDS, st.just({})),
        st.tuples(st.just("meta"), st.booleans(), st.none() | IDS),
    ),
    min_size=4,
    max_size=14,
)


def source(mode: str, limit: int) -> dict[str, Any]:
    # more than one root, because a Version that lost its ancestor becomes one
    file = {"singular": "file", "maxversions": limit, "versionmode": mode, "hasdocument": False}
    return {"groups": {"dirs": {"singular": "dir", "resources": {"files": file}}}}


def command(step: tuple[str, Any, Any]) -> Command:
    match step:
        case "put", id, attributes:
            return WriteTree(f"{FILE}/versions/{id}", attributes, WriteMethod.PUT)
        case "post", ids, _:
            return WriteTree(f"{FILE}/versions", {id: {} for id in ids}, WriteMethod.POST)
        case "delete", id, _:
            return DeleteEntities(f"{FILE}/versions/{id}")
        case _, sticky, id:
            default = {"defaultversionid": id} if sticky and id else {}
            return WriteTree(f"{FILE}/meta", {"defaultversionsticky": sticky, **default}, WriteMethod.PATCH)


def decide_or_problem(world: MemoryWorld, step: Command, context: Context) -> Decision | str:
    try:
        return decide(step, world, context)
    except Problem as problem:
        return str(problem)


@pytest.mark.parametrize("mode", MODES)
@given(steps=STEPS, limit=st.integers(2, 4))
def test_what_is_pruned_unread_is_what_reading_all_finds(mode: str, limit: int, steps: list[Any]) -> None:
    chained, reading = MemoryWorld(), MemoryWorld()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for number, step in enumerate([CreateRegistry("r", source(mode, limit)), *map(command, steps)]):
        context = Context(now + timedelta(seconds=number), f"c{number}")
        found, expected = (decide_or_problem(world, step, context) for world in (chained, reading))
        if isinstance(found, str) or isinstance(expected, str):
            assert found == expected
            continue
        assert found.events == expected.events
        for world, decision in ((chained, found), (reading, expected)):
            world.extend(decision.events, decision.documents)
        chained.version_chains = {**chained.version_chains, **found.version_chains}


def test_a_full_resource_prunes_without_reading_its_versions() -> None:
    class Watched(MemoryWorld):
        def members(self, collection: str) -> Any:
            assert reading_allowed, collection
            return super().members(collection)

    world, reading_allowed = Watched(), True
    for number in range(12):
        step: Command = command(("put", f"v{number}", {})) if number else CreateRegistry("r", source("manual", 3))
        decision = decide(step, world, Context(datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC), f"c{number}"))
        world.extend(decision.events, decision.documents)
        world.version_chains = {**world.version_chains, **decision.version_chains}
        reading_allowed = number < 4
    assert [entity.id for entity in MemoryWorld.members(world, f"{FILE}/versions")] == ["v10", "v11", "v9"]
