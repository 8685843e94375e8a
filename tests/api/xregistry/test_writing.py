"""Responses to writes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.registries.in_process import BASE, Api, create, serving

ID = "xregistry-xregcorrelationid"
URL = f"{BASE}/dirs/d/files/f"


def located(answer: Any) -> tuple[int, str | None, str | None]:
    return answer.status_code, answer.headers.get("location"), answer.headers.get("content-location")


@pytest.mark.parametrize(
    ("method", "path", "body", "first", "again"),
    [
        # HTTP-31, HTTP-32, C-19: Location only with 201; URLs in the form of the request
        ("PUT", "/dirs/d", {}, (201, f"{BASE}/dirs/d", None), (200, None, None)),
        ("PATCH", "/dirs/d", {}, (201, f"{BASE}/dirs/d", None), (200, None, None)),
        ("PUT", "/dirs/d/files/f", b"x", (201, URL, f"{URL}/versions/1"), (200, None, f"{URL}/versions/1")),
        (
            "PUT",
            "/dirs/d/files/f$details",
            {},
            (201, f"{URL}$details", f"{URL}/versions/1$details"),
            (200, None, f"{URL}/versions/1$details"),
        ),
        (
            "PUT",
            "/dirs/d/files/f/versions/v",
            b"x",
            (201, f"{URL}/versions/v", f"{URL}/versions/v"),
            (200, None, f"{URL}/versions/v"),
        ),
        # C-23: a POST that makes a Version is 201 in both forms
        (
            "POST",
            "/dirs/d/files/f",
            b"x",
            (201, f"{URL}/versions/1", f"{URL}/versions/1"),
            (201, f"{URL}/versions/2", f"{URL}/versions/2"),
        ),
        (
            "POST",
            "/dirs/d/files/f$details",
            {"versionid": "v"},
            (201, f"{URL}/versions/v$details", f"{URL}/versions/v$details"),
            (200, None, f"{URL}/versions/v$details"),
        ),
        ("PUT", "/dirs/d/files/f/meta", {}, (201, f"{URL}/meta", None), (200, None, None)),
        ("POST", "/dirs", {"d": {}}, (200, None, None), (200, None, None)),
    ],
)
def test_created_and_updated(api: Api, method: str, path: str, body: Any, first: Any, again: Any) -> None:
    made = api.done(method, path, body)
    assert located(made) == first
    assert located(api.done(method, path, body)) == again


def test_a_version_made_beside_the_default_is_the_content_location(api: Api) -> None:
    # HTTP-32: the Version that the request created, not the unchanged default
    api.done("PUT", "/dirs/d/files/f$details", {"meta": {"defaultversionid": "v1", "defaultversionsticky": True}})
    answer = api.done("PATCH", "/dirs/d/files/f$details", {"versions": {"v2": {}}})
    assert located(answer) == (200, None, f"{URL}/versions/v2$details")
    assert answer.json()["versionid"] == "v1"


@pytest.mark.parametrize(
    ("method", "path", "body", "get"),
    [
        ("PUT", "/", {"name": "n"}, "/"),
        ("PUT", "/dirs/d?inline=files", {"files": {"f": {}}}, "/dirs/d?inline=files"),
        ("PATCH", "/dirs/d?doc&inline", {"files": {"f": {}}}, "/dirs/d?doc&inline"),
        ("PUT", "/dirs/d/files/f$details?inline=file", {"file": "x"}, "/dirs/d/files/f$details?inline=file"),
        ("PUT", "/dirs/d/files/f/meta", {"labels": {"a": "b"}}, "/dirs/d/files/f/meta"),
        ("PUT", "/dirs/d?collections", {"files": {"f": {}}}, "/dirs/d?collections"),
        ("PATCH", "/capabilities", {"flags": ["inline"]}, "/capabilities"),  # CAP-12: shows the new values
        (
            "PUT",
            "/modelsource",
            {"groups": {"dirs": {"singular": "dir"}, "boxes": {"singular": "box"}}},
            "/modelsource",
        ),
    ],
)
def test_answers_are_what_a_get_gives(api: Api, method: str, path: str, body: Any, get: str) -> None:
    # HTTP-30, FLAG-2: the response has the form of a GET with the same flags
    assert api.done(method, path, body).json() == api.get(get)


def test_collections_answer_with_what_was_processed(api: Api) -> None:
    # HTTP-23, HTTP-27: only the entities in the request, nested as there; SER-12: sorted by id; `{}` returns `{}`
    api.done("PUT", "/dirs/other/files/o$details", {})
    answer = api.done("POST", "/?inline=dirs.files", {"dirs": {"d2": {}, "d1": {"files": {"f": {}}}}}).json()
    assert answer == {"dirs": {name: api.get(f"/dirs/{name}?inline=files") for name in ("d1", "d2")}}
    assert list(answer["dirs"]) == ["d1", "d2"]
    both: dict[str, Any] = {"files": {"g": {}}, "notes": {"n": {}}}
    answer = api.done("POST", "/dirs/d1?inline=files.versions", both).json()
    assert answer == {
        "files": {"g": api.get("/dirs/d1/files/g$details?inline=versions")},
        "notes": {"n": api.get("/dirs/d1/notes/n")},
    }
    answer = api.done("PATCH", "/dirs/d1/files/g/versions?doc", {"1": {"name": "x"}, "2": {}}).json()
    assert answer == api.get("/dirs/d1/files/g/versions?doc")
    assert api.done("POST", "/", {}).json() == {}
    assert api.done("PATCH", "/dirs", {}).json() == {}


def test_an_answer_that_cannot_be_built_undoes_the_write(store_url: str) -> None:
    # ENT-4: a bad `inline` is found before the commit; on both databases
    create(store_url)
    with serving(store_url) as api:
        before = api.get("/")
        refused = api.send("PUT", "/dirs/d?inline=nope", {})
        assert (refused.status_code, ID in refused.headers) == (400, False)
        assert api.get("/") == before
        assert api.send("GET", "/dirs/d").status_code == 404
        # what can be inlined depends on the model after the request
        source = api.get("/modelsource")
        source["groups"]["boxes"] = {"singular": "box"}
        assert api.done("PUT", "/?inline=boxes", {"modelsource": source}).json()["boxes"] == {}


def test_the_correlation_id(api: Api) -> None:
    # EV-27: with 200, 201 and 204, JSON and documents; EV-29, EV-30: not with reads, nor if nothing was recorded
    assert api.done("PUT", "/dirs/d/files/f", b"x").headers[ID] == "id1"
    assert api.done("PUT", "/dirs/d", {}).headers[ID] == "id2"
    assert ID not in api.send("GET", "/dirs/d").headers
    assert ID not in api.done("DELETE", "/dirs", {"nope": {}}).headers
    gone = api.done("DELETE", "/dirs/d")
    assert (gone.status_code, gone.content) == (204, b"")
    assert gone.headers[ID].startswith("id")


def test_a_document_sent_back_with_its_headers(api: Api) -> None:
    # EV-31, ENT-15: a client may send back all headers of a response; those of the server do not become attributes
    made = api.done("PUT", "/dirs/d/files/f", b"x", content_type="text/plain", xRegistry_name="a%20b")
    echoed = {name: value for name, value in made.headers.items() if name.startswith(("xregistry-", "content-type"))}
    answer = api.send("PUT", "/dirs/d/files/f", b"x", **echoed)
    assert answer.status_code == 200, answer.text
    same = {name for name in made.headers if name.startswith("xregistry-")} - {ID, "xregistry-epoch"}
    assert {name: answer.headers[name] for name in same} == {name: made.headers[name] for name in same}
    assert answer.headers[ID] != made.headers[ID]


def test_document_writes_merge(api: Api) -> None:
    # HTTP-45: only attributes with headers change; traps 16 to 18: a request without Content-Type erases it, label
    # headers are the whole map
    labels = {"xRegistry-labels.a": "1", "xRegistry-labels.b": "2"}
    api.done("PUT", "/dirs/d/files/f", b"x", content_type="a/b", xRegistry_name="n", **labels)
    answer = api.done("PUT", "/dirs/d/files/f", b"y", xRegistry_description="")
    assert "content-type" not in answer.headers
    assert (answer.headers["xregistry-name"], answer.headers["xregistry-labels.b"]) == ("n", "2")
    assert answer.headers["xregistry-description"] == ""
    answer = api.done("PUT", "/dirs/d/files/f", b"y", xRegistry_name="null", **{"xRegistry-labels.c": "3"})
    assert {name for name in answer.headers if name.startswith("xregistry-labels")} == {"xregistry-labels.c"}
    assert "xregistry-name" not in answer.headers


def test_headers_and_bodies_that_contradict(api: Api) -> None:
    # HTTP-46: no xRegistry headers with metadata in the body; HTTP-47: no document with a URL
    for path in ("/dirs/d/files/f$details", "/dirs/d/notes/n", "/dirs/d/files/f/meta"):
        refused = api.send("PUT", path, {}, xRegistry_name="x")
        assert refused.json()["type"].endswith("http.md#extra_xregistry_header")
        assert refused.json()["args"]["name"] == "xregistry-name"
    assert api.send("PUT", "/dirs/d", {}, xRegistry_name="x").status_code == 201
    refused = api.send("PUT", "/dirs/d/files/f", b"x", xRegistry_fileurl="http://x/")
    assert refused.json()["type"].endswith("#bad_request")


def test_schema_keyword(api: Api) -> None:
    # ENT-6: accepted among the attributes of one entity, not as a key of a map
    for path in ("/", "/dirs/d", "/dirs/d/files/f$details", "/dirs/d/files/f/meta"):
        api.done("PUT", path, {"$schema": "http://x"})
    assert api.send("POST", "/dirs", {"$schema": {}}).status_code == 400


def test_deletes(api: Api) -> None:
    # ENT-162, trap 11: no body deletes all, `{}` none, a map those it names; HTTP-73: for one entity, a body is ignored
    api.done("POST", "/dirs", {"a": {}, "b": {}, "c": {}})
    api.done("DELETE", "/dirs", {})
    assert list(api.get("/dirs")) == ["a", "b", "c"]
    api.done("DELETE", "/dirs", {"a": {}})
    api.done("DELETE", "/dirs/b", b"no json")
    assert list(api.get("/dirs")) == ["c"]
    api.done("DELETE", "/dirs")
    assert api.get("/dirs") == {}
    assert api.send("DELETE", "/dirs/c").status_code == 404


def test_large_bodies_and_answers(api: Api) -> None:
    # HTTP-27: large bodies are handled in other threads than small ones, with the same result
    files = {f"f{number:04}": {"name": "n" * 50} for number in range(500)}
    answer = api.done("POST", "/dirs/d/files", files).json()
    assert answer == api.get("/dirs/d/files")
    assert list(answer) == list(files)


def test_export_and_import(api: Api, tmp_path: Any) -> None:
    # trap 37: the export of one registry, put into an empty one, makes the same tree
    api.done("PUT", "/dirs/d/files/f", b"\xff", content_type="image/png", xRegistry_name="n")
    api.done("POST", "/dirs/d/files/f$details", {"file": {"a": 1}})
    exported = api.get("/export")
    url = f"sqlite:///{tmp_path / 'other.db'}"
    create(url)
    with serving(url) as other:
        other.done("PUT", "/?ignore=id,epoch", exported)
        imported = other.get("/export")
        other.done("POST", "/?ignore=epoch", api.get("/?collections"))
    assert settled(imported) == settled(exported)


def settled(value: Any) -> Any:
    """An exported tree without the epochs, which every registry counts for itself."""
    if not isinstance(value, dict):
        return value
    return {name: settled(inner) for name, inner in value.items() if name != "epoch"}
