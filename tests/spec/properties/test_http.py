"""The state after any history, read over HTTP (P-5 to P-9, P-13, P-14), and concurrent writes (TRAP-7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from annals.commands.store.log import Store
from annals.domain.values.header_values import encode
from annals.projections.entities.rebuild import rebuild
from tests.support.examples import examples
from tests.support.histories import TEXTS, UNHURRIED, Step, as_request, database, histories, temporary_sqlite
from tests.support.registries.requests import BASE, Registry, Request, serving

__all__ = ["database"]

Json = Any
Holds = Callable[[Registry, str], Awaitable[None]]
#: Attributes of a Resource itself; the others are those of its default Version.
OF_RESOURCE = {"fileid", "noteid", "xid", "meta", "versions", "versionscount"}
EXAMPLES = {"sqlite": 20, "postgresql": 4}


def test_what_a_history_leaves_behind(database: tuple[str, Callable[[], Any]]) -> None:
    kind, empty = database

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(histories(documents=True, most=25))
    def run(history: list[Step]) -> None:
        with empty() as url:
            asyncio.run(check_history(url, history))

    run()


async def check_history(url: str, history: list[Step]) -> None:
    async with serving(url) as registry:
        for step in history:
            answer = await registry.ask(as_request(step))
            assert answer.status < 500, step
        for holds in PROPERTIES:
            await holds(registry, url)


async def counts_are_sizes(registry: Registry, url: str) -> None:
    # P-5: a count is the number of members at its URL, and of the inlined members
    for entity in entities(await read(registry, "/?inline")):
        for name in [name for name in entity if name.endswith("count")]:
            collection = name.removesuffix("count")
            members = await read(registry, entity[collection + "url"])
            assert entity[name] == len(members) == len(entity[collection])


async def urls_lead_somewhere(registry: Registry, url: str) -> None:
    # P-6, P-7: every URL in a response can be read, and `self` returns the entity with its inlined collections
    for entity in entities(await read(registry, "/?inline")):
        assert await read(registry, entity["self"] + "?inline") == entity
        for name in [name for name in entity if name.endswith("url") and name != "fileurl"]:
            inlined = entity.get(name.removesuffix("url"))
            found = await read(registry, entity[name] + "?inline")
            assert inlined is None or found == inlined


async def the_document_view_says_the_same(registry: Registry, url: str) -> None:
    # P-9, SER-2: the document view is the API view with pointers for URLs, and each pointer resolves to its entity
    api_view, document = await read(registry, "/?inline"), await read(registry, "/?doc&inline")
    assert without_urls(document) == without_urls(without_default_attributes(api_view))
    for entity in entities(document):
        assert resolved(document, entity["self"]) is entity
        for name, value in entity.items():
            if name.endswith("url") and name != "fileurl":
                assert resolved(document, value) is not None


async def the_log_gives_the_same_answers(registry: Registry, url: str) -> None:
    # P-14: a rebuilt read model gives the same responses, byte for byte
    paths = ("/?inline=*,model,modelsource,capabilities", "/export", "/dirs?inline=files.versions")
    before = [(await registry.ask(Request("GET", path))).content for path in paths]
    store = Store(url)
    try:
        rebuild(store)
    finally:
        store.close()
    assert [(await registry.ask(Request("GET", path))).content for path in paths] == before


async def what_is_read_can_be_put_back(registry: Registry, url: str) -> None:
    # P-8: a PUT of the body of a GET changes only the epoch and modifiedat
    model = await read(registry, "/model")
    for entity in entities(await read(registry, "/?inline")):
        if follows_writes(entity["xid"], model):
            continue
        before = await read(registry, entity["self"])
        answer = await registry.ask(Request("PUT", entity["self"].removeprefix(BASE), before))
        assert answer.status == 200, (before, answer)
        after = await read(registry, entity["self"])
        assert after["epoch"] == before["epoch"] + 1
        assert after | {name: before[name] for name in ("epoch", "modifiedat")} == before


PROPERTIES: list[Holds] = [
    counts_are_sizes,
    urls_lead_somewhere,
    the_document_view_says_the_same,
    the_log_gives_the_same_answers,
    what_is_read_can_be_put_back,  # the only one that writes
]


@settings(max_examples=examples(60), **UNHURRIED)
@given(st.lists(TEXTS.filter(lambda value: value != "null"), min_size=1, max_size=8))
def test_any_text_travels_in_a_header(values: list[str]) -> None:
    # P-13: the value of a request header is returned in JSON, and in a response header
    async def run(url: str) -> None:
        async with serving(
            url, {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
        ) as registry:
            for value in values:
                headers = {"xRegistry-description": encode(value)}
                answer = await registry.ask(Request("PUT", "/dirs/d/files/f", b"x", headers))
                assert answer.headers["xregistry-description"] == encode(value)
                assert (await read(registry, "/dirs/d/files/f$details"))["description"] == value

    with temporary_sqlite() as url:
        asyncio.run(run(url))


def test_one_of_many_writes_with_the_same_epoch_wins(database: tuple[str, Callable[[], Any]]) -> None:
    # TRAP-7: the check of an epoch and the write are atomic
    async def run(url: str) -> None:
        async with serving(url, {"groups": {"dirs": {"singular": "dir"}}}) as registry:
            await registry.send(Request("PUT", "/dirs/d", {}))
            racing = [registry.send(Request("PATCH", "/dirs/d", {"epoch": 1, "name": str(n)})) for n in range(8)]
            answers = await asyncio.gather(*racing)
            assert sorted(answer.status for answer in answers) == [200, *[400] * 7]
            winner = next(json.loads(answer.content)["name"] for answer in answers if answer.status == 200)
            assert (await read(registry, "/dirs/d"))["name"] == winner

    with database[1]() as url:
        asyncio.run(run(url))


def test_versions_made_at_once_are_numbered_one_by_one(database: tuple[str, Callable[[], Any]]) -> None:
    # TRAP-7, ENT-75: concurrent writers get different Version ids, without gaps
    async def run(url: str) -> None:
        source = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
        async with serving(url, source) as registry:
            await asyncio.gather(*[registry.send(Request("POST", "/dirs/d/files/f$details", {})) for _ in range(8)])
            assert sorted(await read(registry, "/dirs/d/files/f/versions")) == [str(n) for n in range(1, 9)]

    with database[1]() as url:
        asyncio.run(run(url))


async def read(registry: Registry, url: str) -> Json:
    answer = await registry.ask(Request("GET", url.removeprefix(BASE)))
    assert answer.status == 200, (url, answer)
    return json.loads(answer.content)


def entities(tree: Json) -> Iterator[dict[str, Json]]:
    """Every entity of a tree, which is every object with an xid; parents first."""
    if isinstance(tree, dict):
        if "xid" in tree:
            yield tree
        for value in tree.values():
            yield from entities(value)


def without_default_attributes(tree: Json) -> Json:
    """A tree without the attributes of default Versions in Resources, which the document view omits."""
    if not isinstance(tree, dict):
        return tree
    resource = "versions" in tree
    return {
        name: without_default_attributes(value) for name, value in tree.items() if not resource or name in OF_RESOURCE
    }


def without_urls(tree: Json) -> Json:
    if not isinstance(tree, dict):
        return tree
    return {name: without_urls(value) for name, value in tree.items() if name != "self" and not name.endswith("url")}


def resolved(document: Json, pointer: str) -> Json:
    """The target of a JSON pointer in a fragment."""
    assert pointer.startswith("#/"), pointer
    for step in pointer[2:].split("/") if pointer != "#/" else ():
        document = document[step.replace("~1", "/").replace("~0", "~")]
    return document


def follows_writes(xid: str, model: Json) -> bool:
    """Whether a write can change further attributes: with the version mode `modifiedat` it reorders Versions."""
    parts = xid.split("/")
    if len(parts) < 5:
        return False
    resources = model["groups"][parts[1]]["resources"]
    return bool(resources[parts[3]]["versionmode"] == "modifiedat")
