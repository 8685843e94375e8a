"""Paths and methods: which methods a path takes, and the problems of refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annals.api.xregistry.request.paths import METHODS, PathKind
from tests.support.registries.in_process import BASE, Api

LINK = "<http://h/r>;rel=xregistry-root"
PATHS = {
    PathKind.REGISTRY: "/",
    PathKind.CAPABILITIES: "/capabilities",
    PathKind.CAPABILITIESOFFERED: "/capabilitiesoffered",
    PathKind.MODEL: "/model",
    PathKind.MODELSOURCE: "/modelsource",
    PathKind.EXPORT: "/export",
    PathKind.GROUPS: "/dirs",
    PathKind.GROUP: "/dirs/d",
    PathKind.RESOURCES: "/dirs/d/files",
    PathKind.RESOURCE: "/dirs/d/files/f$details",
    PathKind.META: "/dirs/d/files/f/meta",
    PathKind.VERSIONS: "/dirs/d/files/f/versions",
    PathKind.VERSION: "/dirs/d/files/f/versions/1$details",
}


@pytest.fixture
def filled(api: Api) -> Api:
    api.done("PUT", "/dirs/d/files/f$details", {})
    return api


def members(answer: Any) -> dict[str, Any]:
    """A problem's members without its texts: type, subject, args."""
    found = answer.json()
    return {"type": found["type"].partition("#")[2], "subject": found.get("subject"), "args": found.get("args")}


def test_each_path_lists_its_methods(filled: Api) -> None:
    # HTTP-3, HTTP-9, trap 27: OPTIONS and 405 name the same methods, and every other method is 405
    for kind, path in PATHS.items():
        options = filled.send("OPTIONS", path)
        assert options.status_code == 200
        assert options.headers["allow"] == options.headers["access-control-allow-methods"]
        assert set(options.headers["allow"].split(", ")) == {*METHODS[kind], "HEAD", "OPTIONS"}
        for method in {"PUT", "PATCH", "POST", "DELETE", "TRACE"} - set(METHODS[kind]):
            refused = filled.send(method, path, {})
            assert (refused.status_code, refused.headers["allow"]) == (405, options.headers["allow"])
            assert members(refused) == {"type": "action_not_supported", "subject": path, "args": {"action": method}}


def test_a_registry_that_is_read_only(filled: Api) -> None:
    # CAP-13, C-7: write methods are 405; HTTP-9: OPTIONS does not list them
    fixed = {"available": {name: {"mutable": name == "capabilities"} for name in ("capabilities", "entities", "model")}}
    filled.done("PATCH", "/capabilities", fixed)
    for path in ("/", "/dirs", "/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/meta"):
        assert filled.send("OPTIONS", path).headers["allow"] == "GET, HEAD, OPTIONS"
        assert filled.send("PATCH", path, {}).status_code == 405
    # HTTP-3: a path that `available` does not list is not available
    for path in ("/modelsource", "/export"):
        assert members(filled.send("GET", path)) == {"type": "not_available", "subject": path, "args": None}
    # CAP-3: flags that are off are ignored
    assert "inline" in filled.get("/capabilities")["flags"]
    filled.done("PATCH", "/capabilities", {"flags": []})
    assert filled.get("/?inline=nope&doc") == filled.get("/")


def test_patch_of_a_document_needs_details(filled: Api) -> None:
    # trap 27: 405 with an Allow without PATCH; other responses have the same Allow (HTTP-9)
    for path in ("/dirs/d/files/f", "/dirs/d/files/f/versions/1"):
        refused = filled.send("PATCH", path, {})
        assert (refused.status_code, "PATCH" in refused.headers["allow"]) == (405, False)
        assert members(refused) == {"type": "details_required", "subject": path, "args": None}
        for method in ("OPTIONS", "TRACE"):
            assert filled.send(method, path).headers["allow"] == refused.headers["allow"]


@pytest.mark.parametrize("path", ["/$details", "/dirs$details", "/dirs/d$details", "/dirs/d/files/f/meta$details"])
def test_details_where_it_does_not_belong(filled: Api, path: str) -> None:
    # HTTP-20
    assert members(filled.send("GET", path)) == {"type": "bad_details", "subject": path, "args": None}


def test_details_means_nothing_where_there_are_no_documents(filled: Api) -> None:
    # HTTP-20: `$details` is accepted, and not in the URLs of responses
    made = filled.done("PUT", "/dirs/d/notes/n$details", {})
    assert made.headers["location"] == made.json()["self"] == f"{BASE}/dirs/d/notes/n"
    assert made.headers["content-location"] == f"{BASE}/dirs/d/notes/n/versions/1"
    assert filled.get("/dirs/d/notes/n") == filled.get("/dirs/d/notes/n$details")


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/other",
        "/.xregistry/more",
        *(f"/-/{name}/more" for name in ("livez", "readyz", "metrics", "openapi.json", "docs")),
    ],
)
def test_what_is_not_built(api: Api, path: str) -> None:
    # HTTP-3, C-7: 404 with the problem of an API that this server does not have
    answer = api.send("GET", path)
    assert (answer.status_code, members(answer)) == (404, {"type": "api_not_found", "subject": path, "args": None})


def test_problems_below_our_own_paths(api: Api) -> None:
    # ERR-1: problem+json with the status, below `/-/` only
    answer = api.send("GET", "/-/nope")
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["status"], answer.status_code) == (404, 404)
    for path in ("/-//log", "/-//nope", "/-/docs/nope"):
        assert api.send("GET", path).status_code == 404
    ours = api.send("GET", "/nope")
    # HTTP-6: the content type of JSON has the charset UTF-8
    assert (ours.headers["content-type"], "status" in ours.json()) == ("application/json; charset=utf-8", False)


def test_every_answer_names_the_root(filled: Api) -> None:
    # HTTP-5, ERR-5: errors, empty responses and documents too
    reads = ("/", "/no", "/dirs", "/dirs/d/files/f", "/-/livez", "/-/no")
    for method, path in (
        *(("GET", path) for path in reads),
        ("OPTIONS", "/"),
        ("PUT", "/model"),
        ("DELETE", "/dirs/d"),
    ):
        assert filled.send(method, path).headers.get_list("link", split_commas=True)[0] == LINK, (method, path)


@pytest.mark.parametrize(
    ("method", "path", "body", "problem"),
    [
        # HTTP-11: a metadata write needs a body; invalid JSON, repeated names and other values than objects are
        # parsing errors, without subject
        ("PUT", "/", None, {"type": "missing_body", "subject": "/", "args": None}),
        ("PATCH", "/dirs/d", b"", {"type": "missing_body", "subject": "/dirs/d", "args": None}),
        ("PUT", "/dirs/d", b"{", "parsing_data"),
        ("PUT", "/dirs/d", [1], "parsing_data"),
        ("PUT", "/dirs/d", b'{"name":"a","name":"b"}', "parsing_data"),
        ("PUT", "/dirs/d", b'{"x":NaN}', "parsing_data"),
        ("DELETE", "/dirs", b"[]", "parsing_data"),
        # ENT-30: an invalid id; ERR-6: the subject is the URL of the request
        ("PUT", "/dirs/-x?doc", {}, "malformed_id"),
        ("PUT", "/dirs/d%2Fe", {}, "malformed_id"),
        # C-8, HTTP-21: an unknown type in a path is not_found
        ("PUT", "/nope/d", {}, {"type": "not_found", "subject": "/nope/d", "args": None}),
        ("POST", "/dirs/d/nope", {}, {"type": "not_found", "subject": "/dirs/d/nope", "args": None}),
        # core 7, example: numbers are strings in `args`
        (
            "DELETE",
            "/dirs/d?epoch=9",
            None,
            {"type": "mismatched_epoch", "subject": "/dirs/d", "args": {"bad_epoch": "9", "epoch": "1"}},
        ),
    ],
)
def test_requests_that_are_refused(filled: Api, method: str, path: str, body: Any, problem: Any) -> None:
    before = filled.get("/?inline")
    answer = filled.send(method, path, body)
    assert answer.status_code == (404 if isinstance(problem, dict) and problem["type"] == "not_found" else 400)
    found = members(answer)
    assert found == problem if isinstance(problem, dict) else found["type"] == problem
    if problem == "malformed_id":
        assert found["subject"] == BASE + path.replace("%2F", "/")
    if problem == "parsing_data":
        assert "subject" not in answer.json()
    assert filled.get("/?inline") == before  # trap 40: nothing is written
    assert "xregistry-xregcorrelationid" not in answer.headers  # EV-29


def test_internal_errors_reveal_no_details(
    filled: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # core 7, server_error: the response to a bug has no details; the log has its traceback
    monkeypatch.setattr("annals.api.xregistry.reading.json_response", lambda *_: json.loads("secret"))
    answer = filled.send("GET", "/dirs/d")
    assert (answer.status_code, members(answer)["type"]) == (500, "server_error")
    assert "secret" not in answer.text
    [failure] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (failure.name, failure.getMessage()) == ("annals.access", "request failed")
    assert failure.exc_info is not None and isinstance(failure.exc_info[1], json.JSONDecodeError)
