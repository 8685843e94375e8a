"""`?dryrun` over HTTP: it returns the events of a write in the form of the log, and writes nothing."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import MetaData, create_engine

from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.hashes import LogRow
from annals.commands.store.log import Store
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.log.json_lines import event_line
from tests.support.examples import examples
from tests.support.histories import Step, as_request, histories
from tests.support.registries.in_process import MODEL, Api, create, serving
from tests.support.registries.requests import Answer, Request, delete_all_rows
from tests.support.registries.requests import serving as recording_registry

ID = "xregistry-xregcorrelationid"
LINES = "application/x-ndjson"
TOKENS = {
    "write": {"name": "walt", "role": "writer"},
    "read": {"name": "rita", "role": "reader"},
    "d": {"name": "dora", "groups": {"/dirs/d": "writer"}},
}


@pytest.fixture
def filled(api: Api) -> Api:
    """A registry with a file in it."""
    api.done("PUT", "/dirs/d/files/f", b"one")
    return api


def head(api: Api) -> Any:
    return api.get("/-/log/head")


WRITES: list[tuple[str, str, Any]] = [
    ("PUT", "/", {"name": "n"}),
    ("POST", "/", {"dirs": {"e": {}}}),
    ("PATCH", "/dirs", {"d": {"name": "n"}}),
    ("PUT", "/dirs/d", {"name": "n"}),
    ("POST", "/dirs/d", {"files": {"g": {}}}),
    ("POST", "/dirs/d/files", {"g": {}}),
    ("PUT", "/dirs/d/files/f", b"two"),
    ("POST", "/dirs/d/files/f", b"two"),
    ("PATCH", "/dirs/d/files/f$details", {"name": "n"}),
    ("PATCH", "/dirs/d/files/f/meta", {"labels": {"a": "b"}}),
    ("POST", "/dirs/d/files/f/versions", {"v": {}}),
    ("PUT", "/dirs/d/files/f/versions/v$details", {}),
    ("DELETE", "/dirs/d/files/f/versions/1", None),
    ("DELETE", "/dirs/d/files/f", None),
    ("DELETE", "/dirs", None),
    ("PUT", "/modelsource", {"groups": {**MODEL["groups"], "boxes": {"singular": "box"}}}),
    ("PATCH", "/capabilities", {"pagination": False}),
    ("POST", "/-/restore/dirs?asof=4", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_a_dry_run_returns_the_events_of_the_write(filled: Api, method: str, path: str, body: Any) -> None:
    # FLAG-83: for every write, in the form of `/-/log` without the correlation id; no id is used up
    before = head(filled)
    tried = filled.done(method, path + ("&" if "?" in path else "?") + "dryrun", body)
    assert tried.status_code == 200
    assert tried.headers["content-type"] == "application/json; charset=utf-8"
    assert ID not in tried.headers
    assert "etag" not in tried.headers
    assert head(filled) == before
    done = filled.done(method, path, body)
    assert done.headers[ID] == "id2"
    logged = filled.get(f"/-/log?after={before['position']}")
    assert without_id(tried.json()) == without_id(logged)
    assert {line["xregcorrelationid"] for line in tried.json()} == {""}
    assert len(logged) > 1


def without_id(lines: Any) -> Any:
    """The lines of the log without the id of their interaction, random salts, and the hashes that cover these."""
    apart = {"xregcorrelationid", "salt", "chain", "state"}
    found = [{name: line[name] for name in line.keys() - apart} for line in lines]
    for line in found:
        line.get("private", {}).pop("salt", None)
    return found


def test_as_lines(filled: Api) -> None:
    # FLAG-83: JSON lines have the same events; a write without events has an empty response in both forms
    array = filled.done("PUT", "/dirs/d?dryrun", {"name": "n"}).json()
    lines = filled.done("PUT", "/dirs/d?dryrun", {"name": "n"}, accept=LINES)
    assert lines.headers["content-type"] == LINES
    assert without_id(map(json.loads, lines.text.splitlines())) == without_id(array)
    assert filled.done("DELETE", "/dirs?dryrun", {}).json() == []
    assert filled.done("DELETE", "/dirs?dryrun", {}, accept=LINES).content == b""
    assert filled.send("PUT", "/dirs/d?dryrun", {}, accept="text/event-stream").status_code == 406


@pytest.mark.parametrize("path", ["/", "/dirs", "/dirs/d", "/dirs/d/files/f", "/export", "/model", "/capabilities"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("capabilities", [{}, {"flags": []}], ids=["all flags", "no flags"])
def test_a_read_is_no_write(filled: Api, capabilities: Any, method: str, path: str) -> None:
    # FLAG-83, FLAG-84: dryrun on a read is bad_flag, whatever flags the capabilities have
    filled.done("PATCH", "/capabilities", capabilities)
    refused = filled.send(method, f"{path}?dryrun")
    assert refused.status_code == 400
    if method == "GET":
        assert (refused.json()["type"].rpartition("#")[2], refused.json()["args"]) == ("bad_flag", {"flag": "dryrun"})


def test_no_capability_is_about_it(filled: Api) -> None:
    # FLAG-84: the capabilities neither list dryrun nor switch it off
    assert "dryrun" not in filled.get("/capabilitiesoffered")["flags"]["enum"]
    filled.done("PATCH", "/capabilities", {"flags": []})
    before = head(filled)
    assert len(filled.done("PUT", "/dirs/d?dryrun", {"name": "n"}).json()) == 2
    assert head(filled) == before


REFUSED: list[tuple[str, str, Any, dict[str, str]]] = [
    ("PUT", "/dirs/d", {"nope": 1}, {}),
    ("PUT", "/dirs/d", b"{", {}),
    ("PATCH", "/dirs/d", {"epoch": 7}, {}),
    ("DELETE", "/dirs/x", None, {}),
    ("PUT", "/modelsource", {"groups": {}}, {}),
    ("PUT", "/dirs/d", {}, {"inline": "nope"}),
    ("PUT", "/dirs/d", {}, {"setdefaultversionid": "1"}),
    ("PUT", "/nope/d", {}, {}),
    ("PUT", "/dirs", {}, {}),
    ("POST", "/-/restore/dirs/d", None, {"asof": "1"}),
    ("POST", "/-/restore/dirs/d", None, {"asof": "99"}),
]


@pytest.mark.parametrize(("method", "path", "body", "flags"), REFUSED)
def test_refused_alike(filled: Api, method: str, path: str, body: Any, flags: dict[str, str]) -> None:
    # FLAG-83, ENT-4: same status and problem, also if the response cannot be built; nothing is written
    query = "&".join(f"{name}={value}" for name, value in flags.items())
    before = head(filled)
    done = filled.send(method, f"{path}?{query}", body)
    tried = filled.send(method, f"{path}?{query}&dryrun", body)
    assert done.status_code >= 400
    assert (tried.status_code, tried.json(), tried.headers.get("allow")) == (
        done.status_code,
        done.json(),
        done.headers.get("allow"),
    )
    assert head(filled) == before


def test_conditions_count(filled: Api) -> None:
    # RFC 9110: a condition that does not hold refuses a dry run as well
    tag = filled.send("GET", "/dirs/d").headers["etag"]
    assert filled.send("PUT", "/dirs/d?dryrun", {}, if_match='"0"').status_code == 412
    assert filled.send("PUT", "/dirs/d?dryrun", {"name": "n"}, if_match=tag).status_code == 200
    assert filled.send("PUT", "/dirs/d", {"name": "n"}, if_match=tag).status_code == 200


def test_who_may_try(store_url: str) -> None:
    # Callers: a dry run needs write access; a writer of one Group gets only the events of this Group
    create(store_url)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        api.done("PUT", "/dirs/d", {}, authorization="Bearer write")
        assert api.send("PUT", "/dirs/d?dryrun", {}, authorization="Bearer read").status_code == 403
        assert api.send("PUT", "/dirs/e?dryrun", {}, authorization="Bearer d").status_code == 403
        tried = api.done("PUT", "/dirs/d/files/f?dryrun", b"x", authorization="Bearer d").json()
        assert [line.get("xid") for line in tried] == [None, "/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/1"]
        gone = api.done("DELETE", "/dirs/d?dryrun", authorization="Bearer d").json()
        assert [line.get("xid") for line in gone] == [None, "/dirs/d"]


EXAMPLES = {"sqlite": 5, "postgresql": 2}


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.generated
def test_a_dry_run_predicts_any_history(request: pytest.FixtureRequest, kind: str) -> None:
    # FLAG-83: before each step, a dry run changes no row, and predicts the events or the error of the step
    url = request.getfixturevalue("postgres_url") if kind == "postgresql" else None

    @settings(max_examples=examples(EXAMPLES[kind]), deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(documents=True, most=15))
    def run(history: list[Step]) -> None:
        with store(url) as empty:
            asyncio.run(check_history(empty, history))

    run()


async def check_history(url: str, history: list[Step]) -> None:
    async with recording_registry(url) as registry:
        for step in history:
            request = as_request(step)
            registry.moment.number += 1
            before, end = dump(url), len(logged(url, 0))
            tried = await registry.send(with_dryrun(request))
            assert dump(url) == before, step
            done = await registry.send(request)
            if done.status >= 400:
                assert (tried.status, json_of(tried)) == (done.status, json_of(done)), step
            else:
                events = [line for line in json.loads(tried.content) if "topic" in line]
                assert tried.status == 200, step
                assert without_id(events) == without_id(logged(url, end)), step


def json_of(answer: Answer) -> Any:
    return json.loads(answer.content)


def with_dryrun(request: Request) -> Request:
    return request._replace(path=request.path + ("&" if "?" in request.path else "?") + "dryrun")


def logged(url: str, after: int) -> list[Any]:
    """The events after a position, in the form of `/-/log`."""
    store = Store(url)
    try:
        return [json.loads(event_line(row)) for row in rows(store, after)]
    finally:
        store.close()


def rows(store: Store, after: int) -> list[LogRow]:
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT position, stream, revision, topic, state FROM log ORDER BY position")
        return [LogRow._make((*row[:4], decompress_state(row[4]))) for row in found if row[0] > after]


@contextmanager
def store(url: str | None) -> Iterator[str]:
    """An empty store: the one of a URL, or a new file."""
    if url is None:
        with tempfile.TemporaryDirectory() as directory:
            yield f"sqlite:///{directory}/annals.db"
    else:
        delete_all_rows(url)
        yield url


def dump(url: str) -> dict[str, list[str]]:
    """All rows of all tables, except the attribute index, which follows the rows later, and its position."""
    engine, tables = create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1)), MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        rows = {table.name: sorted(map(repr, connection.execute(table.select()))) for table in tables.sorted_tables}
    engine.dispose()
    rows["projection"] = [row for row in rows["projection"] if INDEX_NAME not in row]
    return {name: rows[name] for name in rows if not name.startswith("attribute")}
