"""The audit trail of random histories is complete, and a difference turns the state of one moment into another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.commands.store.log import Store
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import dot_path
from annals.domain.values import xid as xids
from tests.support.examples import examples
from tests.support.histories import Step, as_request, database, histories
from tests.support.registries.requests import Registry, Request, serving

__all__ = ["database"]

Json = Any
#: Attributes of the living entities and the hashes of their documents, by xid.
State = dict[str, tuple[Json, str | None]]
EXAMPLES = {"sqlite": 15, "postgresql": 3}
PATHS = ("/", "/dirs", "/dirs/a", "/dirs/a/files", "/dirs/a/files/f1", "/model")


@pytest.mark.generated
def test_differences_lead_from_one_moment_to_another(database: tuple[str, Callable[[], Any]]) -> None:
    kind, empty = database
    moments = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from(PATHS)), min_size=4, max_size=4)

    @settings(max_examples=examples(EXAMPLES[kind]), deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(documents=True), moments)
    def run(history: list[Step], pairs: list[tuple[float, float, str]]) -> None:
        with empty() as url:
            asyncio.run(check_history(url, history, pairs))

    run()


async def check_history(url: str, history: list[Step], pairs: list[tuple[float, float, str]]) -> None:
    async with serving(url) as registry:
        for step in history:
            await registry.ask(as_request(step))
        recorded = events(url)
        await check_trail(registry, recorded)
        for before, after, path in pairs:
            ends = round(before * len(recorded)), round(after * len(recorded))
            await check_difference(registry, recorded, *ends, path)


async def check_difference(registry: Registry, recorded: list[EntityEvent], before: int, after: int, path: str) -> None:
    # FLAG-80: the state at a position is the state after the last complete interaction
    found = await read(registry, f"/-/diff{path}?from={before}&to={after}")
    if found is None:
        assert not any(inside(path, event) for event in recorded)
        return
    ends = found["from"]["position"], found["to"]["position"]
    one, other = (state(recorded[:end], path) for end in ends)
    assert ends[0] <= before and ends[1] <= after
    assert apply_differences(one, found["entities"]) == other
    keys = [xids.tree_key(each["xid"]) for each in found["entities"]]
    assert keys == sorted(keys)


async def check_trail(registry: Registry, recorded: list[EntityEvent]) -> None:
    # EV-24: history and interactions have each event once, under the id of its interaction
    whole = await read(registry, "/-/history/?below&images=after")
    shown = [(row["position"], row["xid"], row["xregcorrelationid"], row["after"] or {}) for row in whole]
    assert shown == [(at, e.xid, e.xregcorrelationid, e.attributes) for at, e in enumerate(recorded, 1)]
    listed = await read(registry, "/-/interactions")
    assert [row["last"] for row in listed] == [row["first"] - 1 for row in listed[1:]] + [len(recorded)]


def inside(path: str, event: EntityEvent) -> bool:
    """Whether an event is about an entity at or below a path."""
    return xids.tree_key(path) <= xids.tree_key(event.xid) < xids.subtree(path)[1]


def state(recorded: list[EntityEvent], path: str) -> State:
    """The state at or below a path after some events."""
    living = {event.stream: event for event in recorded if inside(path, event)}
    alive = (event for event in living.values() if not isinstance(event, EntityDeleted))
    return {event.xid: (event.attributes, event.private.get("document")) for event in alive}


def apply_differences(state: State, differences: list[Json]) -> State:
    """Applies differences to a state. Checks that their old values are those of the state."""
    found = {xid: (json.loads(json.dumps(attributes)), document) for xid, (attributes, document) in state.items()}
    for each in differences:
        attributes, document = found.pop(each["xid"], ({}, None))
        assert (each["change"] == "created") == (each["xid"] not in state)
        for value in each["attributes"]:
            put(attributes, dot_path.parse(value["path"]), value)
        if "document" in each:
            assert each["document"]["before"] == document
            document = each["document"]["after"]
        if each["change"] != "deleted":
            found[each["xid"]] = attributes, document
        else:
            assert attributes == {}
    return found


def put(attributes: Json, steps: tuple[Any, ...], value: Json) -> None:
    for step in steps[:-1]:
        attributes = attributes[step]
    assert attributes.get(steps[-1]) == value.get("before")
    assert (steps[-1] in attributes) == ("before" in value)
    attributes.pop(steps[-1], None)
    if "after" in value:
        attributes[steps[-1]] = value["after"]


def events(url: str) -> list[EntityEvent]:
    store = Store(url)
    try:
        return [event for _, event in store.events(0, 100_000)]
    finally:
        store.close()


async def read(registry: Registry, path: str) -> Json:
    """The JSON at a path, or None if it is 404."""
    answer = await registry.send(Request("GET", path))
    assert answer.status in (200, 404), answer
    return json.loads(answer.content) if answer.status == 200 else None
