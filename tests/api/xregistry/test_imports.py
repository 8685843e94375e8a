"""`/-/import` and `annals import`: documents in older forms."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving
from tests.support.serving import annals

IMPORT = "/-/import?dialect=endpoint-1.0-rc2"
DOCUMENT: dict[str, Any] = {
    "specversion": "1.0-rc2",
    "endpointscount": 1,
    "endpoints": {
        "queue": {
            "endpointid": "queue",
            "epoch": 7,
            "usage": "producer",
            "protocol": "AMQP/1.0",
            "protocoloptions": {"endpoints": [{"url": "amqps://h/q"}], "linkproperties": {"a": "b"}},
            "messagegroups": ["/messagegroups/g"],
            "messages": {
                "on": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {"attributes": {"type": {"value": "on"}}},
                    "basemessageurl": "#/messagegroups/g/messages/b",
                }
            },
        }
    },
}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url) as served:
        yield served


def test_a_document_is_written_in_todays_words(api: Api) -> None:
    # an import is one interaction; the response has the result as `POST /` returns it, and the changes
    head = api.get("/-/log/head")["position"]
    answer = api.done("POST", IMPORT, DOCUMENT)
    body = answer.json()
    assert list(body) == ["result", "report"]
    assert body["result"] == {"endpoints": {"queue": api.get("/endpoints/queue")}}
    assert [change["path"] for change in body["report"]] == [
        "",
        "/endpoints/queue",
        "/endpoints/queue/protocoloptions",
        "/endpoints/queue/protocoloptions/endpoints/0",
        "/endpoints/queue/messages/on",
        "/endpoints/queue/messages/on",
        "/endpoints/queue/messages/on/envelopemetadata",
    ]
    stored = api.get("/endpoints/queue")
    assert stored["usage"] == ["producer"]
    assert stored["protocoloptions"]["endpoints"] == [{"uri": "amqps://h/q"}]
    assert stored["protocoloptions"]["link-properties"] == {"a": "b"}
    message = api.get("/endpoints/queue/messages/on")
    assert message["basemessageuri"] == "/messagegroups/g/messages/b"
    assert message["envelopemetadata"]["type"]["value"] == "on"
    interaction = api.get(f"/-/interactions/{answer.headers['xregistry-xregcorrelationid']}")
    assert len(interaction["events"]) == api.get("/-/log/head")["position"] - head


def test_nothing_is_removed(api: Api) -> None:
    api.done("PUT", "/endpoints/other", {"usage": ["consumer"]})
    api.done("PUT", "/endpoints/queue/messages/off", {})
    api.done("POST", IMPORT, DOCUMENT)
    assert set(api.get("/endpoints")) == {"other", "queue"}
    assert set(api.get("/endpoints/queue/messages")) == {"off", "on"}


def test_a_map_of_endpoints(api: Api) -> None:
    body = api.done("POST", IMPORT, DOCUMENT["endpoints"]).json()
    assert body["result"]["endpoints"]["queue"]["usage"] == ["producer"]
    assert body["report"][0]["path"] == "/queue"


def test_a_dry_run_answers_with_events(api: Api) -> None:
    # FLAG-83: as on other writes
    head = api.get("/-/log/head")
    answer = api.done("POST", f"{IMPORT}&dryrun", DOCUMENT)
    events = answer.json()
    assert {"/endpoints/queue", "/endpoints/queue/messages/on"} <= {event.get("xid") for event in events}
    assert api.get("/-/log/head") == head


def test_findings_are_counted(api: Api) -> None:
    # V-01: an import is a write like any other, and so is a dry run of it
    endpoints = {"endpoints": {"e": {"usage": "producer", "channel": "", "protocol": "BunnyMQ"}}}
    for path in (f"{IMPORT}&dryrun", IMPORT):
        assert api.done("POST", path, endpoints).headers["annals-findings"] == "2"
    assert "annals-findings" not in api.done("POST", IMPORT, {"endpoints": {"e": {"usage": "producer"}}}).headers


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        (IMPORT, {"endpoints": {"e": {"usage": ["reader"]}}}, "invalid_attribute"),
        (IMPORT, {"endpoints": {"e": {"messages": {"m": {"foo": 1}}}}}, "unknown_attribute"),
        (IMPORT, {"specversion": "1.0-rc4", "endpoints": {}}, "bad_request"),
        (IMPORT, b"", "missing_body"),
        (IMPORT, b"{", "parsing_data"),
        (IMPORT, [], "bad_request"),
        ("/-/import", {}, "bad_request"),
        ("/-/import?dialect=other", {}, "bad_request"),
        (f"{IMPORT}&inline", {}, "bad_request"),
        ("/-/import/endpoints?dialect=endpoint-1.0-rc2", {}, "api_not_found"),
    ],
)
def test_what_is_refused(api: Api, path: str, body: Any, name: str) -> None:
    # a document that fails the ordinary checks is refused, and nothing is recorded
    head = api.get("/-/log/head")
    answer = api.send("POST", path, body)
    assert answer.json()["type"].rpartition("#")[2] == name
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code == answer.json()["status"]
    assert api.get("/-/log/head") == head


def test_methods(api: Api) -> None:
    assert api.send("GET", IMPORT).headers["allow"] == "OPTIONS, POST"
    assert api.send("OPTIONS", "/-/import").headers["allow"] == "OPTIONS, POST"


def test_readers_may_not(store_url: str) -> None:
    create(store_url, default_source())
    with serving(store_url, tokens=json.dumps({"r": {"name": "r", "role": "reader"}})) as api:
        assert api.send("POST", IMPORT, DOCUMENT, authorization="Bearer r").status_code == 403


def test_on_the_console(tmp_path: Path) -> None:
    # the console imports the same document, and prints the changes to stderr
    file = tmp_path / "old.json"
    file.write_text(json.dumps(DOCUMENT))
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    done = annals("import", "--dialect", "endpoint-1.0-rc2", file, "--database", database, cwd=tmp_path)
    assert (done.returncode, done.stdout.split(",")[0]) == (0, f"{file}: 4 events")
    assert f"{file}/endpoints/queue: usage -> usage (roles have to be a list)" in done.stderr
    unknown = annals("import", "--dialect", "rc1", file, "--database", database, cwd=tmp_path)
    assert (unknown.returncode, "endpoint-1.0-rc2" in unknown.stderr) == (2, True)
    file.write_text("[]")
    refused = annals("import", "--dialect", "endpoint-1.0-rc2", file, "--database", database, cwd=tmp_path)
    assert refused.returncode == 1


def test_a_store_that_fails_ends_the_progress_with_a_problem(sqlite_url: str) -> None:
    # UI-123: the stream ends with its result also if that is no refusal
    create(sqlite_url, default_source())
    with serving(sqlite_url) as served:
        served.done("PUT", "/schemagroups/g", {})
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as other, other:
            other.execute("DROP TABLE head")
        export: dict[str, Any] = {"schemagroups": {"h": {}}}
        answer = served.send("POST", "/-/import?dialect=xRegistry", export, accept="text/event-stream")
        name, data = answer.text.rstrip().splitlines()[-2:]
        problem = json.loads(data.removeprefix("data: "))
        assert (name, problem["status"]) == ("event: refused", 500)
