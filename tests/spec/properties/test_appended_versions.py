"""A new newest Version is added without reading the others, with the same events as if all were read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.domain.compat.legacy_apis import version_number
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from annals.domain.decisions.rules import complete_resources
from annals.domain.decisions.rules.ancestry import VersionLineage
from annals.domain.errors.problems import Problem
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityEvent
from tests.support.examples import examples
from tests.support.histories import MODES, UNHURRIED, Step, command, histories, model
from tests.support.registries.memory import MemoryRegistry
from tests.support.registries.memory_world import MemoryWorld

SCHEMA = "/schemagroups/g/schemas/s"
#: Ids that are numbers and ids that are not. A definition of a legacy API may have both.
IDS = ("1", "2", "3", "9", "v1", "v2", "v3")
SCHEMA_MODEL = {
    "groups": {"schemagroups": {"singular": "schemagroup", "resources": {"schemas": {"singular": "schema"}}}}
}


@given(histories(most=30))
@settings(max_examples=examples(150), **UNHURRIED)
def test_events_of_any_history(steps: Sequence[Step]) -> None:
    assert_same_events([command(step) for step in steps], {})


_ADDED = st.builds(lambda id: WriteTree(f"{SCHEMA}/versions/{id}", {}, WriteMethod.PUT), st.sampled_from(IDS))
_POSTED = st.builds(lambda: WriteTree(SCHEMA, {}, WriteMethod.POST))
_REMOVED = st.builds(lambda id: DeleteEntities(f"{SCHEMA}/versions/{id}"), st.sampled_from(IDS))
_STICKY = st.builds(
    lambda id: WriteTree(f"{SCHEMA}/meta", {"defaultversionid": id}, WriteMethod.PATCH), st.sampled_from((*IDS, None))
)


@given(st.lists(st.one_of(_ADDED, _ADDED, _POSTED, _REMOVED, _STICKY), max_size=25))
@settings(max_examples=examples(150), **UNHURRIED)
def test_numbers_of_definitions(commands: Sequence[Command]) -> None:
    # LEG-406: no number is used twice, also if the ids of Versions are not their numbers
    registry = assert_same_events(commands, SCHEMA_MODEL)
    if registry.find(SCHEMA):
        versions = registry.versions(SCHEMA).values()
        numbers = [version_number(version.id, version.private) for version in versions]
        assert len({*numbers}) == len(numbers) and 0 not in numbers


@pytest.mark.parametrize("mode", MODES)
def test_what_is_read(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, members = list[str](), MemoryWorld.members

    def recorded(world: MemoryWorld, collection: str) -> Sequence[Entity]:
        read.append(collection)
        return members(world, collection)

    registry = MemoryRegistry(model(mode))
    for number in range(5):
        registry.post("/dirs/a/files/f", {"versionid": f"{number + 1}.0.0"})
    monkeypatch.setattr(MemoryWorld, "members", recorded)
    registry.post("/dirs/a/files/f", {"versionid": "6.0.0"})
    assert read == []
    assert registry.get("/dirs/a/files/f").attributes["versionscount"] == 6
    assert registry.get("/dirs/a/files/f/versions/6.0.0").attributes["ancestorid"] == "5.0.0"
    registry.post("/dirs/a/files/f", {"versionid": "0.1.0", "createdat": "2001-01-01T00:00:00Z"})
    assert read == (["/dirs/a/files/f/versions"] if mode != "modifiedat" else [])


def assert_same_events(commands: Sequence[Command], source: dict[str, Any]) -> MemoryRegistry:
    """Executes commands with and without the optimization, and compares the outcomes; returns the registry."""
    registry, reading_all = MemoryRegistry(source), MemoryRegistry(source)
    for each in commands:
        outcome = outcome_of(registry, each)
        with every_version_read():
            assert outcome == outcome_of(reading_all, each), each
    return registry


def outcome_of(registry: MemoryRegistry, command: Command) -> tuple[EntityEvent, ...] | tuple[str, str]:
    """The events of a command, or its error."""
    try:
        return registry.do(command).events
    except Problem as problem:
        return type(problem).__name__, str(problem)


@contextmanager
def every_version_read() -> Iterator[None]:
    """Disables the optimization: all Versions of a Resource are read for each new one."""

    def no_lineages(changes: ChangeSet, resource: object) -> list[VersionLineage] | None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(complete_resources, "_appended_lineages", no_lineages)
        yield
