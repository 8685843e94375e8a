"""`/-/compare` over HTTP: two Versions, one at two moments, or a Version and a draft."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

Json = Any
SCHEMA = "/schemagroups/g/schemas/s"
COMPARE = f"/-/compare{SCHEMA}"
TOKENS = {
    "admin": {"name": "ada", "role": "admin"},
    "reader": {"name": "rosa", "role": "reader"},
    "elsewhere": {"name": "ed", "groups": {"/schemagroups/h": "reader"}},
    "none": {"name": "nemo"},
}


def record(*fields: Json) -> Json:
    """An Avro schema. fields: names of those without a default, or whole fields."""
    found = [{"name": field, "type": "string"} if isinstance(field, str) else field for field in fields]
    return {"type": "record", "name": "R", "fields": found}


def put(api: Api, id: str, document: Json, format: str = "Avro/1.11", **attributes: Json) -> None:
    content = document if isinstance(document, dict) else str(document)
    api.done("PUT", f"{SCHEMA}/versions/{id}$details", {"format": format, "schema": content, **attributes})


@pytest.fixture(scope="module")
def schemas(shared_store_url: str) -> Iterator[Api]:
    """A schema of three Versions in one line: a, ab, a; then the last one changes to abc. Other schemas follow."""
    create(shared_store_url, default_source())
    with serving(shared_store_url) as api:
        for id, names in (("v1", "a"), ("v2", "ab"), ("v3", "a")):
            put(api, id, record(*names))
        api.done("PUT", f"{SCHEMA}/versions/v3$details", {"format": "Avro/1.11", "schema": record(*"abc")})
        api.done("PUT", "/schemagroups/g/schemas/text$details", {"format": "Own/1", "schema": "x"})
        api.done(
            "PUT", "/schemagroups/g/schemas/far$details", {"format": "Avro/1.11", "schemaurl": "http://127.0.0.1:1/"}
        )
        api.done("PUT", "/schemagroups/g/schemas/json$details", {"format": "JsonSchema/draft-07", "schema": {}})
        for id, target in (("ref", SCHEMA), ("dangling", f"{SCHEMA}x")):
            api.done("PUT", f"/schemagroups/g/schemas/{id}$details", {"meta": {"xref": target}})
        yield api


def changes(api: Api, query: str = "", path: str = COMPARE) -> list[tuple[str, str, bool, bool]]:
    """Each change in short: what, where, and whether it is allowed backward and forward."""
    return short(api.get(path + query))


def short(found: Json) -> list[tuple[str, str, bool, bool]]:
    return [(one["change"], one["path"], one["backward"]["ok"], one["forward"]["ok"]) for one in found["changes"]]


ADDED_B, ADDED_C = ("added", "b", False, True), ("added", "c", False, True)
REMOVED_B = ("removed", "b", True, False)


def test_an_answer(schemas: Api) -> None:
    # UI-93
    found = schemas.get(f"{COMPARE}?left=v1&right=v2")
    left, right = found.pop("left"), found.pop("right")
    assert (left["versionid"], left["format"], right["versionid"]) == ("v1", "avro/1.11", "v2")
    assert left["position"] == right["position"] == schemas.get("/-/log/head")["position"]
    reason = 'the reader\'s field "b" has no default, and the writer has no such field'
    assert found == {
        "xid": SCHEMA,
        "levels": {
            level: {"ok": level.startswith("forward")}
            for level in (
                *("backward", "backward_transitive", "forward", "forward_transitive", "full", "full_transitive"),
            )
        },
        "complete": True,
        "changes": [
            {
                "change": "added",
                "path": "b",
                "left": None,
                "right": {"pointer": "/fields/1"},
                "before": None,
                "after": "string",
                "backward": {"ok": False, "rule": "reader-field-missing-default", "text": reason},
                "forward": {"ok": True},
            }
        ],
    }


def head(api: Api) -> int:
    return int(api.get("/-/log/head")["position"])


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        pytest.param(SCHEMA, "", [ADDED_C], id="the default Version and its ancestor"),
        pytest.param(SCHEMA, "?right=v2", [ADDED_B], id="a Version and its ancestor"),
        pytest.param(SCHEMA, "?left=v1", [ADDED_B, ADDED_C], id="a Version and the default Version"),
        pytest.param(SCHEMA, "?left=v2&right=v1", [REMOVED_B], id="the other way round"),
        pytest.param(SCHEMA, "?left=v1&right=v1", [], id="the same"),
        pytest.param(SCHEMA, "?leftasof=AB", [ADDED_C], id="the default Version at a moment, and now"),
        pytest.param(SCHEMA, "?leftasof=AB&rightasof=AB", [], id="at one moment"),
        pytest.param(SCHEMA, "?left=v3&leftasof=A", [ADDED_B, ADDED_C], id="a Version at a moment"),
        pytest.param(f"{SCHEMA}/versions/v3", "?leftasof=A", [ADDED_B, ADDED_C], id="the path of a Version"),
        pytest.param("/schemagroups/g/schemas/ref", "?left=v1&right=v2", [ADDED_B], id="through an xref"),
    ],
)
def test_sides(schemas: Api, path: str, query: str, expected: Json) -> None:
    # UI-90; A and AB stand for the moments when the default Version had these fields
    ids = {revision["xid"]: revision["position"] for revision in schemas.get(f"/-/history{SCHEMA}?below")[::-1]}
    first = {name: ids[f"{SCHEMA}/versions/{id}"] for name, id in (("AB", "v2"), ("A", "v3"))}
    for name in sorted(first, key=len, reverse=True):
        query = query.replace(f"asof={name}", f"asof={first[name]}")
    assert changes(schemas, query, f"/-/compare{path}") == expected


def test_a_draft(schemas: Api) -> None:
    before = head(schemas)
    found = schemas.done("POST", f"{COMPARE}?left=v1", record("a", "b")).json()
    assert short(found) == [ADDED_B]
    assert "versionid" not in found["right"] and found["left"]["versionid"] == "v1"
    against_default = schemas.done("POST", COMPARE, record(*"abc")).json()
    assert short(against_default) == [] and against_default["left"]["versionid"] == "v3"
    draft_07 = "/-/compare/schemagroups/g/schemas/json?rightformat=JsonSchema/draft/2020-12"
    assert short(schemas.done("POST", draft_07, {"type": "string"}).json()) == [("added", "", False, True)]
    assert head(schemas) == before


def test_lines_and_tables(schemas: Api) -> None:
    query = f"{COMPARE}?left=v1&right=v2"
    listed = schemas.get(query)["changes"]
    lines = schemas.send("GET", query, accept="application/x-ndjson")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.text.splitlines()] == listed
    table = schemas.send("GET", f"{query}&format=csv")
    assert table.headers["content-type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(table.text))
    assert row == {
        **{"change": "added", "path": "b", "left": "", "right": "/fields/1", "before": "", "after": "string"},
        **{"backward": "breaking", "backwardrule": "reader-field-missing-default"},
        **{"backwardtext": listed[0]["backward"]["text"], "forward": "ok", "forwardrule": "", "forwardtext": ""},
    }


def test_an_unchanged_comparison_is_not_sent_again(schemas: Api) -> None:
    tag = schemas.send("GET", COMPARE).headers["etag"]
    assert schemas.send("GET", COMPARE, **{"if-none-match": tag}).status_code == 304
    assert schemas.send("GET", f"{COMPARE}?left=v1", **{"if-none-match": tag}).status_code == 200


REFUSED = [
    ("GET", f"{COMPARE}?left=v9", 404, "v9"),
    ("GET", f"{COMPARE}?leftasof=0", 404, "cannot be found"),
    ("GET", f"{COMPARE}?leftasof=99999", 400, "leftasof"),
    ("GET", f"{COMPARE}?rightasof=someday", 400, "rightasof"),
    ("GET", f"{COMPARE}?level=full", 400, "level"),
    ("GET", f"{COMPARE}?format=xml", 400, "json, ndjson, csv"),
    ("GET", f"{COMPARE}/versions/v1?left=v2", 400, "on both sides"),
    ("GET", f"{COMPARE}/versions", 404, "neither"),
    ("GET", "/-/compare/schemagroups/g", 404, "neither"),
    ("GET", "/-/compare/", 404, "neither"),
    ("GET", "/-/compare/schemagroups/g/schemas/none", 404, "none"),
    ("GET", "/-/compare/schemagroups/g/schemas/text", 400, "Own/1"),
    ("GET", "/-/compare/schemagroups/g/schemas/far", 400, "elsewhere"),
    ("GET", "/-/compare/schemagroups/g/schemas/dangling", 400, "its xref has no target"),
    ("GET", "/ui/compare/schemagroups/g/schemas/dangling", 400, "its xref has no target"),
    ("POST", f"{COMPARE}?right=v1", 400, "right"),
    ("POST", f"{COMPARE}?rightformat=JsonSchema/draft-07", 400, "cannot be compared"),
    ("POST", COMPARE, 400, "the right document cannot be compared"),
    ("PUT", COMPARE, 405, ""),
]


@pytest.mark.parametrize(("method", "path", "status", "reason"), REFUSED)
def test_refused(schemas: Api, method: str, path: str, status: int, reason: str) -> None:
    found = schemas.send(method, path, {} if method == "POST" else None)
    assert (found.status_code, reason in found.text) == (status, True), found.text


def test_it_agrees_with_a_check(schemas: Api) -> None:
    # UI-93: of the same draft, a check and a comparison name the same rules at the same places
    draft = record("a", {"name": "b", "type": "int"}, "d")
    check = schemas.done("POST", f"/-/check{SCHEMA}?compatibility=full&against=v3", draft).json()
    found = schemas.done("POST", f"{COMPARE}?left=v3", draft).json()
    checked = sorted((one["direction"], one["rule"], one["text"]) for one in check["incompatibilities"])
    compared = sorted(
        (direction, one[direction]["rule"], one[direction]["text"])
        for one in found["changes"]
        for direction in ("backward", "forward")
        if not one[direction]["ok"]
    )
    assert checked == compared and len(checked) == 4
    assert found["levels"]["full"]["ok"] is check["compatible"] is False


def test_callers(store_url: str) -> None:
    # a caller can compare only what it may read
    create(store_url, default_source())
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:

        def send(token: str, method: str = "GET", body: Json = None, path: str = COMPARE) -> int:
            return api.send(method, path, body, authorization=f"Bearer {token}").status_code

        details = {"format": "Avro/1.11", "schema": record("a")}
        assert send("admin", "PUT", details, f"{SCHEMA}$details") == 201
        expected = {"admin": 200, "reader": 200, "elsewhere": 404, "none": 403}
        assert {token: send(token) for token in TOKENS} == expected
        assert {token: send(token, "POST", record("b")) for token in TOKENS} == expected
        # an xref from a visible Group to a hidden one has the same status as a read of the Version
        assert send("admin", "PUT", {"meta": {"xref": SCHEMA}}, "/schemagroups/h/schemas/r$details") == 201
        shown = send("elsewhere", path="/schemagroups/h/schemas/r/versions/1")
        assert send("elsewhere", path="/-/compare/schemagroups/h/schemas/r?left=1") == shown


def test_limits_of_checks_hold(sqlite_url: str) -> None:
    # UI-93: the checking processes compare, so a document that takes too long is only refused
    wide = {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(2_000)}}
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        for id, more in (("v1", {}), ("v2", {"minProperties": 1})):
            put(api, id, wide | more, "JsonSchema/draft-07")
        assert short(api.get(COMPARE)) == [("added", "", False, True)]
    with serving(sqlite_url, check_seconds=0.01) as api:
        answer = api.send("GET", COMPARE)
        assert (answer.status_code, "takes longer than the limit" in answer.text) == (400, True), answer.text
