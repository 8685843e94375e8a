"""Runs changes.yaml and events.yaml as requests to real stores: the CloudEvents of each request (T01 to T106).

`then` has subjects. The value of each is `created`, `deleted`, `updated` for an event without a list of changes, or
the names that the event lists. `refreshed` means that no event is published. `deprecated` has the second event of a
subject. Bodies: `$model` is merged into the model of the row, and null removes members; `$current` is the response to
a GET, with its members in reverse order.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from annals.commands.store.database.known_log_end import KnownLogEnd
from annals.domain.values import xid as xids
from annals.projections.events.xregistry_events import PREFIX, ChangeEvent
from tests.spec.test_changes import MACROS, MODEL, ROWS, path, significant
from tests.support.event_messages import event_messages, last_position
from tests.support.registries.requests import BASE, Registry, Request, ReusableRegistry, serving
from tests.support.stores import schema_of

MODELS: dict[str, dict[str, Any]] = {"library": MODEL, "empty": {}}
#: Rows about Resources without documents that also apply to Resources with documents.
BOTH_KINDS = {"T03", "T07", "T08", "T09", "T10", "T11", "T12", "T13"}
SUBJECTS = ("/", "/model", "/modelsource", "/capabilities")
ACTIONS = {"created": None, "deleted": None, "updated": None}

Description = tuple[str, str, Any]


def also_for_scans(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        if row["id"] in BOTH_KINDS:
            scans = json.loads(re.sub(r'"b(?=[/"])', '"s/scans/p1', json.dumps(row)))
            yield scans | {"id": f"{row['id']}/scans"}


def named(rows: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[f"{row['id']}: {row['rule']}" for row in rows])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReusableRegistry]:
    """A registry on each database."""
    if request.param == "sqlite":
        yield from staged(f"sqlite:///{tmp_path_factory.mktemp('events') / 'annals.db'}")
        return
    with schema_of(request.getfixturevalue("postgres_server")) as url:
        yield from staged(url)


def staged(url: str) -> Iterator[ReusableRegistry]:
    stage = ReusableRegistry(url, MODELS)
    yield stage
    stage.close()


@pytest.fixture(scope="class")
def library(stage: ReusableRegistry) -> Iterator[tuple[asyncio.Runner, Registry]]:
    """A running registry for all rows of the class. It caches only the model, which none of them changes."""
    with asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patch:
        # Each row takes back the log of the one before, which a registry refuses to continue.
        patch.setattr(KnownLogEnd, "check", lambda *arguments: None)
        runner.run(stage.reset("library"))
        serves = serving(stage.database)
        yield runner, runner.run(serves.__aenter__())
        runner.run(serves.__aexit__(None, None, None))


class TestOneRegistry:
    """Rows about Groups, Resources and Versions."""

    @named(list(also_for_scans(ROWS)))
    def test_events_of_a_request(
        self, row: dict[str, Any], stage: ReusableRegistry, library: tuple[asyncio.Runner, Registry]
    ) -> None:
        runner, registry = library
        runner.run(stage.reset("library"))
        runner.run(story(row, registry, stage.database))


@named(yaml.load(Path(__file__).with_name("events.yaml").read_text(), yaml.CSafeLoader))
def test_events_of_a_request_to_a_new_registry(row: dict[str, Any], stage: ReusableRegistry) -> None:
    async def run() -> None:
        await stage.reset(row.get("model", "library"))
        async with serving(stage.database) as registry:
            await story(row, registry, stage.database)

    asyncio.run(run())


async def story(row: Mapping[str, Any], registry: Registry, url: str) -> None:
    for write in row.get("given", []):
        answer = await registry.ask(await request(registry, row, *write))
        assert 200 <= answer.status < 300, (write, answer)
    names = await version_names(registry, row)
    tested_request = await request(registry, row, *row["when"])
    position = last_position(url)
    answer = await registry.ask(tested_request)
    events = event_messages(url, position)
    if isinstance(row["then"], str):  # EV-8: a refused request has no events
        assert json.loads(answer.content)["type"].partition("#")[2] == row["then"]
        assert events == []
        return
    assert 200 <= answer.status < 300, answer
    for version, found in (await version_names(registry, row)).items():
        names[version] = names.get(version, set()) | found
    assert [description_of(event) for event in events] == list(expected(row, names))
    await is_one_interaction(registry, events, answer.headers.get("xregistry-xregcorrelationid"))


async def is_one_interaction(registry: Registry, events: list[ChangeEvent], header: str | None) -> None:
    # EV-11, EV-18, EV-20, EV-24, EV-27, EV-30: all events have one time and one id, and the response has that id
    moment = registry.moment.clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert {(event.xregcorrelationid, event.time) for event in events} == ({(header, moment)} if header else set())
    for event in events:  # EV-13: source and subject form the URL of the entity, until it is deleted
        found = await registry.send(Request("GET", (event.source + event.subject).removeprefix(BASE)))
        assert (found.status == 404) == event.type.endswith(".deleted"), event


async def request(registry: Registry, row: Mapping[str, Any], *write: Any) -> Request:
    """The request of a write in a row: [method, path, body, flags]."""
    method, where, body, flags = (*write, None, None)[:4]
    parts = xids.segments(path(where))
    metadata = parts[2:3] == ("scans",) and len(parts) in (4, 6) and method != "DELETE" and not isinstance(body, str)
    query = f"?{urlencode(flags, safe=',')}" if flags else ""
    if isinstance(body, dict) and "$model" in body:
        body = merged(MODELS[row.get("model", "library")], body["$model"])
    elif body == "$current":
        body = reversed_members(json.loads((await registry.send(Request("GET", path(where)))).content))
    headers = {"Content-Type": "text/plain"} if isinstance(body, str) else {}
    return Request(method, path(where) + ("$details" if metadata else "") + query, body, headers)


def merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    both = {name: merged(below.get(name), above.get(name, below.get(name))) for name in {**below, **above}}
    return {name: value for name, value in both.items() if value is not None}


def reversed_members(value: Any) -> Any:
    """An equal value with its members in reverse order."""
    return {name: reversed_members(value[name]) for name in reversed(value)} if isinstance(value, dict) else value


async def version_names(registry: Registry, row: Mapping[str, Any]) -> dict[str, set[str]]:
    """The names of the attributes with a value in each Version of the row's Resource, by versionid."""
    parts = xids.segments(path(row["when"][1]))[:4]
    if len(parts) < 4:
        return {}
    answer = await registry.send(Request("GET", xids.join(*parts, "versions") + "?inline"))
    versions = json.loads(answer.content) if answer.status == 200 else {}
    # A Version without a document is returned with an empty one.
    return {id: {name.removesuffix("base64") for name in one if one[name] != ""} for id, one in versions.items()}


def description_of(event: ChangeEvent) -> Description:
    type = event.type.removeprefix(PREFIX)
    tolerant = type.endswith(".updated") and not type.startswith("capabilities")
    changed = event.changed
    return type, event.subject, changed if changed is None else significant(changed) if tolerant else set(changed)


def expected(row: Mapping[str, Any], names: Mapping[str, set[str]]) -> Iterator[Description]:
    """The events that a row expects, in the order of EV-77."""
    then = {path(subject): text for subject, text in row["then"].items() if text != "refreshed"}
    deprecated = {path(subject): listed for subject, listed in row.get("deprecated", {}).items()}
    for subject in sorted(then, key=place):
        entity, text = entity_of(subject), then[subject]
        yield f"{entity}.{text if text in ACTIONS else 'updated'}", subject, listed_names(entity, text, names)
        if subject in deprecated:
            yield f"{entity}.deprecation", subject, set(deprecated[subject])


def place(subject: str) -> tuple[int, str]:
    return (SUBJECTS.index(subject), "") if subject in SUBJECTS else (len(SUBJECTS), xids.tree_key(subject))


def entity_of(subject: str) -> str:
    kinds = {0: "registry", 2: "group", 4: "resource", 6: "version"}
    return subject[1:] if subject in SUBJECTS[1:] else kinds[len(xids.segments(subject))]


def listed_names(entity: str, text: str, names: Mapping[str, set[str]]) -> set[str] | None:
    if text in ACTIONS:
        return None
    found: set[str] = set()
    for word in text.split():
        versions = word[3:-1].split(",") if word.startswith("DV(") else ()
        found |= set().union(*(names[version] for version in versions)) if versions else set(_words(word))
    return found if entity == "capabilities" else significant(found)


def _words(word: str) -> list[str]:
    return MACROS.get(word, word).split()


# --- single exchanges ------------------------------------------------------------------------------------------------


def test_a_whole_exchange(stage: ReusableRegistry) -> None:
    # T15, EV-19, EV-27, EV-28: the response has the id and time of the events, even if the request sets other times
    async def run() -> None:
        await stage.reset("library")
        async with serving(stage.database) as registry:
            position = last_position(stage.database)
            answer = await registry.ask(Request("PUT", "/shelves/s1", {}))
            assert answer.status == 201
            group = json.loads(answer.content)
            events = event_messages(stage.database, position)
            assert [description_of(event) for event in events] == [
                ("registry.updated", "/", {"epoch", "modifiedat", "shelves", "shelvescount"}),
                ("group.created", "/shelves/s1", None),
            ]
            assert {event.xregcorrelationid for event in events} == {answer.headers["xregistry-xregcorrelationid"]}
            now = {datetime.fromisoformat(event.time) for event in events}
            assert now == {datetime.fromisoformat(group[name]) for name in ("createdat", "modifiedat")}
            position = last_position(stage.database)
            times = {"createdat": "2001-01-01T00:00:00Z", "modifiedat": "2002-01-01T00:00:00Z"}
            assert (await registry.ask(Request("PUT", "/shelves/s1", times))).status == 200
            [event] = event_messages(stage.database, position)
            assert datetime.fromisoformat(event.time) == registry.moment.clock()

    asyncio.run(run())


def test_reads_and_refusals_have_no_events(stage: ReusableRegistry) -> None:
    # EV-7, EV-8, EV-9: a read, a refused request and a time of deprecation or removal result in no event
    async def run() -> None:
        await stage.reset("library")
        async with serving(stage.database) as registry:
            soon = (registry.moment.clock() + timedelta(seconds=5)).isoformat()
            later = (registry.moment.clock() + timedelta(seconds=9)).isoformat()
            body = {"deprecated": {"effective": soon, "removal": later}, "books": {"b1": {}}}
            await registry.ask(Request("PUT", "/shelves/s1", body))
            before = event_messages(stage.database)
            registry.moment.number += 3600
            for method, where in product(("GET", "HEAD", "OPTIONS"), ("/", "/export", "/shelves/s1", "/model")):
                assert (await registry.ask(Request(method, where))).status < 300
            half = {"s1": {"name": "fine"}, "s2": {"epoch": "bad"}}
            for refused in (Request("POST", "/shelves", half), Request("DELETE", "/shelves/s1?epoch=99")):
                assert (await registry.ask(refused)).status == 400
            assert event_messages(stage.database) == before

    asyncio.run(run())
