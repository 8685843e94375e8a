"""The model of a registry with copied Groups: what links copy of it, and what clients may not change (LEG-909)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.errors.problems import Problem
from tests.support.registries.linked import ManualLink, NamedRegistry, manual_link, named_registry

Json = Any
SCOPE = {"groups": ["/dirs/a"]}


def source(files: Json | None = None, **more: Json) -> Json:
    """A modelsource with the Group type `dirs`. files: more members of its Resource type; more: more Group types."""
    return {
        "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", **(files or {})}}}, **more}
    }


CRATES: Json = {"crates": {"singular": "crate"}}
NOTED: Json = {"attributes": {"note": {"type": "string"}}}
NEEDED: Json = {"attributes": {"note": {"type": "string", "required": True}}}


async def model(registry: NamedRegistry) -> Json:
    return json.loads((await registry.ask("GET", "/modelsource")).content)["groups"]


async def hash(registry: NamedRegistry, path: str) -> Json:
    return json.loads((await registry.ask("GET", f"/-/hash{path}")).content)["hash"]


async def versions(registry: NamedRegistry, path: str) -> list[str]:
    return list(json.loads((await registry.ask("GET", f"{path}/versions")).content))


@pytest.fixture
def databases(tmp_path: Path) -> list[str]:
    return [f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "other", "third")]


def test_a_new_model_is_applied_to_copied_groups(databases: list[str]) -> None:
    # LEG-909, MOD-93: when `maxversions` becomes smaller, Versions of the copied Group are pruned by the source's own
    # interaction, those of local Groups by the link's interaction that changes the model here
    async def run() -> None:
        async with (
            named_registry("primary1", databases[0]) as there,
            named_registry("replica1", databases[1], 1) as here,
        ):
            await here.write("PUT", "/modelsource", {"groups": CRATES})
            await there.write("PUT", "/modelsource", source())
            await there.write("POST", "/dirs/a/files/f/versions", {"1": {}, "2": {}, "3": {}})
            async with manual_link(here, there, SCOPE) as pull:
                await pull.ingest()
                await here.write("POST", "/dirs/own/files/f/versions", {"1": {}, "2": {}, "3": {}})
                await there.write("PUT", "/modelsource", source({"maxversions": 2}))
                await pull.ingest()
            assert await model(here) == {**source({"maxversions": 2})["groups"], **CRATES}
            for path in ("/dirs/a/files/f", "/dirs/own/files/f"):
                assert await versions(here, path) == ["2", "3"]
            assert await hash(here, "/dirs/a") == await hash(there, "/dirs/a")
            gone = {e.xid: facts.caller for facts, events in here.interactions() for e in events if e.TOPIC[6:7] == "D"}
            assert gone == {"/dirs/own/files/f/versions/1": "links/primary1", "/dirs/a/files/f/versions/1": "root"}
            assert [*verify_log(here.store), *verify_row_hashes(here.store)] == []

    asyncio.run(run())


def test_a_model_and_what_it_needs_come_together(databases: list[str]) -> None:
    # LEG-909: one interaction of the source may change the model and the entities that would violate it otherwise
    async def run() -> None:
        async with (
            named_registry("primary1", databases[0]) as there,
            named_registry("replica1", databases[1], 1) as here,
        ):
            await there.write("PUT", "/modelsource", source())
            await there.write("PUT", "/dirs/a/files/f$details", {})
            async with manual_link(here, there, SCOPE) as pull:
                await pull.ingest()
                both = {"modelsource": source(NEEDED), "dirs": {"a": {"files": {"f": {"note": "n"}}}}}
                await there.write("PUT", "/?inline", both)
                await pull.ingest()
            assert await hash(here, "/dirs/a") == await hash(there, "/dirs/a")
            assert (await model(here))["dirs"] == source(NEEDED)["groups"]["dirs"]

    asyncio.run(run())


def test_an_old_model_that_comes_again_changes_nothing(databases: list[str]) -> None:
    # LEG-910: an interaction that arrives twice is recorded once, also a model that changed nothing here
    async def run() -> None:
        async with (
            named_registry("primary1", databases[0]) as there,
            named_registry("replica1", databases[1], 1) as here,
        ):
            await here.write("PUT", "/modelsource", source())
            await there.write("PUT", "/modelsource", source())
            async with manual_link(here, there, SCOPE) as pull:
                await pull.ingest()
                for maxversions in (1, 0, 3):
                    await there.write("PUT", "/modelsource", source({"maxversions": maxversions}))
                    await pull.ingest()
                end = here.store.log_end()
                for lines in (0, 1, 5, 8, None):
                    await pull.ingest(0, lines)
                    assert here.store.log_end() == end
            assert await model(here) == source({"maxversions": 3})["groups"]

    asyncio.run(run())


def test_types_of_a_link_cannot_be_changed_locally(databases: list[str]) -> None:
    # LEG-909: clients cannot change the types of a link's Groups, but the rest of the model
    async def run() -> None:
        async with (
            named_registry("primary1", databases[0]) as there,
            named_registry("replica1", databases[1], 1) as here,
        ):
            await there.write("PUT", "/modelsource", source())
            async with manual_link(here, there, SCOPE) as pull:
                await pull.ingest()
                before = here.store.log_end()
                for wanted in (source(NOTED), {"groups": CRATES}, {}):
                    answer = await here.ask("PUT", "/modelsource", wanted)
                    found = json.loads(answer.content)
                    assert (answer.status, found["type"].partition("#")[2]) == (400, "readonly")
                    assert here.store.log_end() == before
                await here.write("PUT", "/modelsource", source(**CRATES))
                await here.write("POST", f"/-/links/{pull.id}/actions/promote")
            await here.write("PUT", "/modelsource", source(NOTED, **CRATES))

    asyncio.run(run())


def test_registries_of_one_type_change_it_one_after_the_other(databases: list[str]) -> None:
    # LEG-909: if two sources make the same change to a type they share, the first one changes the type here
    async def run() -> None:
        async with (
            named_registry("primary1", databases[0]) as one,
            named_registry("primary2", databases[1]) as two,
            named_registry("replica1", databases[2], 1) as here,
            manual_link(here, one, SCOPE) as first,
            manual_link(here, two, {"groups": ["/dirs/b"]}) as second,
        ):
            for each, group in ((one, "a"), (two, "b")):
                await each.write("PUT", "/modelsource", source())
                await each.write("PUT", f"/dirs/{group}/files/f$details", {})
            await first.ingest()
            await second.ingest()
            await both(one, first, NOTED)
            await both(two, second, NOTED)
            assert (await model(here))["dirs"] == source(NOTED)["groups"]["dirs"]
            for each, path in ((one, "/dirs/a"), (two, "/dirs/b")):
                assert await hash(here, path) == await hash(each, path)

    async def both(each: NamedRegistry, pull: ManualLink, files: Json) -> None:
        await each.write("PUT", "/modelsource", source(files))
        await each.write("PATCH", f"/dirs/{'a' if pull.id == 'primary1' else 'b'}/files/f$details", {"note": "n"})
        await pull.ingest()

    asyncio.run(run())


def test_a_model_that_others_do_not_fit_is_not_taken_in(databases: list[str]) -> None:
    # LEG-909, MOD-93: a source's model that local entities violate is refused; nothing is ingested until they comply
    async def run() -> None:
        async with (
            named_registry("primary1", databases[0]) as there,
            named_registry("replica1", databases[1], 1) as here,
        ):
            await there.write("PUT", "/modelsource", source())
            async with manual_link(here, there, SCOPE) as pull:
                await pull.ingest()
                await here.write("PUT", "/dirs/own/files/f$details", {})
                await there.write("PUT", "/modelsource", source(NEEDED))
                await there.write("PUT", "/dirs/a/files/f$details", {"note": "n"})
                before = here.store.log_end()
                with pytest.raises(Problem, match="non-compliant"):
                    await pull.ingest()
                assert here.store.log_end() == before
                await here.write("DELETE", "/dirs/own")
                await pull.ingest()
            assert await hash(here, "/dirs/a") == await hash(there, "/dirs/a")

    asyncio.run(run())
