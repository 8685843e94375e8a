"""References over HTTP: messages, schemas, xrefs, subscriptions, hidden Groups, and several steps."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

GROUP, BASE, DERIVED = "/messagegroups/g", "/messagegroups/g/messages/base", "/messagegroups/g/messages/derived"
SCHEMA, ENDPOINT, COPY = "/schemagroups/s/schemas/t", "/endpoints/e", "/messagegroups/g/messages/copy"
STORY: tuple[tuple[str, Any], ...] = (
    (f"{SCHEMA}/versions/1$details", {"format": "Own/1"}),
    (f"{SCHEMA}/versions/2$details", {"format": "Own/1"}),
    (BASE, {"dataschemauri": f"{SCHEMA}/versions/1#Name", "dataschemaformat": "Avro/1.12.0"}),
    (DERIVED, {"basemessageuri": BASE, "dataschemaxid": SCHEMA}),
    (f"{COPY}/meta", {"xref": DERIVED}),
    (ENDPOINT, {"usage": ["producer"], "messagegroups": [GROUP, "/messagegroups/none", "https://x.example/g"]}),
)
USES_SCHEMA = (DERIVED, SCHEMA, "dataschemaxid", "resolved")
USES_VERSION = (BASE, f"{SCHEMA}/versions/1", "dataschemauri", "resolved")
USES_BASE = (DERIVED, BASE, "basemessageuri", "resolved")
POINTS = (COPY, DERIVED, "meta.xref", "resolved")
MEMBERS = ("from", "to", "attribute", "state")

SUBSCRIPTION = {"sink": "https://93.184.216.34/in", "protocol": "HTTP"}
TOKENS = {
    "root": {"name": "root", "role": "admin"},
    "part": {"name": "part", "groups": {"/messagegroups/g": "writer", "/schemagroups/s": "reader"}},
}


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    create(shared_store_url, default_source())
    with serving(shared_store_url) as api:
        for path, body in STORY:
            api.done("PUT", path, body)
        yield api


def listed(api: Api, path: str, **headers: str) -> list[tuple[str, ...]]:
    """The four members of each reference that a path returns."""
    answer = api.done("GET", f"/-/references{path}", **headers)
    return [tuple(one[name] for name in MEMBERS) for one in answer.json()["references"]]


#: The references from each entity, and those to it.
LISTED: dict[str, tuple[list[tuple[str, ...]], list[tuple[str, ...]]]] = {
    SCHEMA: ([], [USES_VERSION, USES_SCHEMA]),
    f"{SCHEMA}/versions/1": ([], [USES_VERSION]),
    f"{SCHEMA}/versions/2": ([], []),
    BASE: ([USES_VERSION], [USES_BASE]),
    f"{BASE}/versions/1": ([USES_VERSION], []),
    DERIVED: ([USES_BASE, USES_SCHEMA], [POINTS]),
    COPY: ([POINTS], []),
    GROUP: ([], [(ENDPOINT, GROUP, "messagegroups[0]", "resolved")]),
    ENDPOINT: (
        [
            (ENDPOINT, GROUP, "messagegroups[0]", "resolved"),
            (ENDPOINT, "/messagegroups/none", "messagegroups[1]", "dangling"),
            (ENDPOINT, "https://x.example/g", "messagegroups[2]", "external"),
        ],
        [],
    ),
    f"{DERIVED}/meta": ([USES_BASE, USES_SCHEMA], [POINTS]),
}


@pytest.mark.parametrize("path", LISTED)
def test_both_directions_of_an_entity(api: Api, path: str) -> None:
    # UI-77
    outgoing, incoming = LISTED[path]
    assert listed(api, f"{path}?direction=out") == outgoing
    assert listed(api, f"{path}?direction=in") == incoming
    assert listed(api, path) == outgoing + incoming


def test_below_an_entity(api: Api) -> None:
    # UI-77, UI-85: what a deletion of the Group would break
    assert listed(api, f"{GROUP}?below&direction=in") == [LISTED[ENDPOINT][0][0], POINTS, USES_BASE]
    assert listed(api, f"{GROUP}?below&direction=out") == [USES_VERSION, POINTS, USES_BASE, USES_SCHEMA]
    assert listed(api, "/schemagroups/s?below&direction=in") == [USES_VERSION, USES_SCHEMA]


def test_several_steps(api: Api) -> None:
    # UI-77: each entity once, the nearest first
    found = api.get(f"/-/references{COPY}?direction=out&depth=3")["references"]
    assert [(one["from"], one["to"], one["depth"]) for one in found] == [
        (COPY, DERIVED, 1),
        (DERIVED, BASE, 2),
        (DERIVED, SCHEMA, 2),
        (BASE, f"{SCHEMA}/versions/1", 3),
    ]
    back = api.get(f"/-/references{SCHEMA}?direction=in&depth=2")["references"]
    assert [(one["from"], one["depth"]) for one in back] == [(BASE, 1), (DERIVED, 1), (DERIVED, 2), (COPY, 2)]
    pages, path = [], f"/-/references{COPY}?direction=out&depth=3&limit=3"
    while path:
        answer = api.done("GET", path)
        pages.append(answer.json()["references"])
        path = answer.links.get("next", {}).get("url", "").removeprefix("http://h/r")
    assert pages == [found[:3], found[3:]]


def test_formats_and_entity_tags(api: Api) -> None:
    # UI-77: the same formats as the audit trail
    as_json = api.get(f"/-/references{DERIVED}")["references"]
    lines = api.done("GET", f"/-/references{DERIVED}", accept="application/x-ndjson").text.splitlines()
    assert [json.loads(line) for line in lines] == as_json
    rows = csv.DictReader(io.StringIO(api.done("GET", f"/-/references{DERIVED}?format=csv").text))
    assert [{**row, "depth": int(row["depth"])} for row in rows] == as_json
    tag = api.done("GET", f"/-/references{DERIVED}").headers["etag"]
    assert api.send("GET", f"/-/references{DERIVED}", if_none_match=tag).status_code == 304


REFUSED = {
    f"{DERIVED}?direction=up": "direction",
    f"{DERIVED}?depth=0": "depth",
    f"{DERIVED}?depth=11": "depth",
    f"{DERIVED}?depth=2&below": "below",
    f"{DERIVED}?after=3": "after",
    f"{DERIVED}?limit=0": "limit",
    f"{DERIVED}?path=x": "path",
    f"{DERIVED}?asof=x": "asof",
}


@pytest.mark.parametrize("path", REFUSED)
def test_refused_parameters_are_named(api: Api, path: str) -> None:
    answer = api.send("GET", f"/-/references{path}")
    assert answer.status_code == 400
    assert REFUSED[path] in answer.json()["title"], answer.text


@pytest.mark.parametrize("path", [f"{GROUP}/messages/none", "/messagegroups", "/nothing/x", f"{BASE}/versions/9"])
def test_no_entity(api: Api, path: str) -> None:
    assert api.send("GET", f"/-/references{path}").status_code == 404


def test_only_gets(api: Api) -> None:
    assert api.send("POST", f"/-/references{DERIVED}", {}).status_code == 405


def test_the_past(store_url: str) -> None:
    # UI-77: the references of a past moment, also those from and to entities that are deleted now
    create(store_url, default_source())
    with serving(store_url) as api:
        api.done("PUT", BASE, {})
        api.done("PUT", DERIVED, {"basemessageuri": BASE})
        then = api.get("/-/log/head")["position"]
        api.done("DELETE", DERIVED)
        api.done("PUT", f"{GROUP}/messages/new", {"basemessageuri": BASE})
        assert [one[0] for one in listed(api, f"{BASE}?direction=in")] == [f"{GROUP}/messages/new"]
        assert [one[0] for one in listed(api, f"{BASE}?direction=in&asof={then}")] == [DERIVED]
        api.done("DELETE", BASE)
        assert api.send("GET", f"/-/references{BASE}").status_code == 404
        assert listed(api, f"{BASE}?asof={then}") == [USES_BASE]
        assert listed(api, f"{GROUP}/messages/new?direction=out")[0][3] == "dangling"
        answer = api.done("GET", f"/-/references{BASE}?asof={then}")
        assert "immutable" in answer.headers["cache-control"]


def test_a_hidden_entity_is_as_if_absent(store_url: str) -> None:
    # ACC-71, ACC-75, ACC-78
    create(store_url, default_source())
    root, part = ({"authorization": f"Bearer {name}"} for name in ("root", "part"))
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        api.done("PUT", f"{SCHEMA}$details", {"format": "Own/1"}, **root)
        api.done("PUT", "/messagegroups/hidden/messages/m", {"dataschemauri": SCHEMA}, **root)
        api.done("PUT", BASE, {"basemessageuri": "/messagegroups/hidden/messages/m", "dataschemauri": SCHEMA}, **root)
        everything = listed(api, f"{SCHEMA}?direction=in", **root)
        assert [one[0] for one in everything] == [BASE, "/messagegroups/hidden/messages/m"]
        assert listed(api, f"{SCHEMA}?direction=in", **part) == everything[:1]
        assert [one[3] for one in listed(api, f"{BASE}?direction=out", **part)] == ["dangling", "resolved"]
        assert api.send("GET", "/-/references/messagegroups/hidden", **part).status_code == 404
        assert [one[0] for one in listed(api, "/?below&direction=in", **part)] == [BASE]


def test_subscriptions_that_match(store_url: str) -> None:
    # UI-77: subscriptions that would receive the events of the entity; their owners and admins see them
    create(store_url, default_source())
    root, part = ({"authorization": f"Bearer {name}"} for name in ("root", "part"))
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        api.done("PUT", BASE, {}, **root)
        api.done("PUT", DERIVED, {}, **root)

        def subscribe(name: str, **members: Any) -> str:
            body = SUBSCRIPTION | members
            answer = api.send("POST", "/subscriptions", body, authorization=f"Bearer {name}")
            assert answer.status_code == 201, answer.text
            id: str = answer.json()["id"]
            return f"/subscriptions/{id}"

        own = subscribe("part", filters=[{"exact": {"subject": BASE}}])
        updates = subscribe("root", types=["io.xregistry.resource.updated"])
        deletions = subscribe("root", filters=[{"sql": "type LIKE '%deleted' AND subject LIKE '%/base'"}])
        subscribe("root", types=["io.xregistry.group.updated"])

        def found(path: str, **headers: str) -> set[str]:
            references = listed(api, path, **headers)
            assert {one[1:] for one in references} <= {(path.partition("?")[0], "filters", "resolved")}
            return {one[0] for one in references}

        assert found(f"{BASE}?direction=in", **root) == {own, updates, deletions}
        assert found(f"{DERIVED}?direction=in", **root) == {updates}
        assert found(f"{BASE}?direction=in", **part) == {own}
        pages, path = set[str](), f"{BASE}?direction=in&limit=1"
        while path:
            answer = api.done("GET", f"/-/references{path}", **root)
            pages |= {one["from"] for one in answer.json()["references"]}
            path = answer.links.get("next", {}).get("url", "").removeprefix("http://h/r/-/references")
        assert pages == {own, updates, deletions}


def test_references_of_confluent_schemas(store_url: str) -> None:
    # UI-77: a schema's own references are versions of subjects
    create(store_url, default_source())
    subjects = "/compat/confluent/subjects"
    with serving(store_url) as api:
        base = {"schema": '{"type":"record","name":"B","fields":[]}'}
        user = {
            "schema": '{"type":"record","name":"U","fields":[{"name":"b","type":"B"}]}',
            "references": [{"name": "B", "subject": "base", "version": 1}],
        }
        api.done("POST", f"{subjects}/base/versions", base)
        then = api.get("/-/log/head")["position"]
        api.done("POST", f"{subjects}/user/versions", user)
        schemas = "/schemagroups/default/schemas"
        uses = (f"{schemas}/user", f"{schemas}/base/versions/1", "references[0]", "resolved")
        assert listed(api, f"{schemas}/user?direction=out") == [uses]
        assert listed(api, f"{schemas}/base?direction=in") == [uses]
        assert listed(api, f"{schemas}/base/versions/1?direction=in") == [uses]
        assert listed(api, f"{schemas}/base?direction=in&asof={then}") == []
        assert listed(api, "/schemagroups/default?below&direction=in") == [uses]
