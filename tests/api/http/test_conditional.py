"""Entity tags: which responses have one, when it changes, and which conditions use it."""

from __future__ import annotations

import pytest

from tests.support.registries.in_process import Api

READ = ["/", "/dirs", "/dirs/d", "/dirs/d/files", "/dirs/d/files/f", "/dirs/d/files/f$details", "/dirs/d/files/f/meta"]
READ += [
    "/dirs/d/files/f/versions/1",
    "/model",
    "/modelsource",
    "/capabilities",
    "/export",
    "/?inline=*",
    "/dirs/d?doc",
]


@pytest.fixture
def filled(api: Api) -> Api:
    api.done("PUT", "/dirs/d/files/f", b"document")
    api.done("PUT", "/dirs/e", {})
    return api


def tag(api: Api, path: str, **headers: str) -> str:
    return str(api.done("GET", path, **headers).headers["etag"])


@pytest.mark.parametrize("path", READ)
def test_an_answer_is_sent_once(filled: Api, path: str) -> None:
    # HTTP-8: 304 for a fresh If-None-Match, with the tag that the client has and without a body
    known = tag(filled, path)
    again = filled.send("GET", path, if_none_match=f'"other", W/{known}')
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", known)
    assert "xregistry-root" in again.headers["link"]
    by_browser = ", accept, sec-fetch-mode" * (path == "/")  # UI-11: `/` redirects a browser to the pages
    assert again.headers["vary"] == f"accept-encoding{by_browser}"


@pytest.mark.parametrize("path", READ)
def test_each_form_has_a_tag_of_its_own(filled: Api, path: str) -> None:
    other = path + ("&" if "?" in path else "?") + "anything"
    assert tag(filled, path) != tag(filled, other)


def test_a_tag_is_that_of_its_entity(filled: Api) -> None:
    # HTTP-8: the tag of an entity changes with the entity only, the tag of a collection with any write
    before = {path: tag(filled, path) for path in ("/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/1", "/dirs")}
    filled.done("PATCH", "/dirs/e", {"name": "n"})
    assert [path for path in before if tag(filled, path) != before[path]] == ["/dirs"]
    filled.done("PUT", "/dirs/d/files/f/versions/1", b"another")
    assert [path for path in before if tag(filled, path) != before[path]] == [
        "/dirs/d/files/f",
        "/dirs/d/files/f/versions/1",
        "/dirs",
    ]


def test_a_new_model_makes_new_tags(filled: Api) -> None:
    # a response depends on the model as well
    before = tag(filled, "/dirs/d/files/f$details")
    source = filled.get("/modelsource")
    source["groups"]["dirs"]["resources"]["files"]["attributes"]["more"] = {"type": "string"}
    filled.done("PUT", "/modelsource", source)
    assert tag(filled, "/dirs/d/files/f$details") != before


def test_a_write_that_depends_on_a_state(filled: Api) -> None:
    # HTTP-8: If-Match is compared with the entity as it is when the write is carried out
    known = tag(filled, "/dirs/d")
    filled.done("PATCH", "/dirs/e", {"name": "elsewhere"})
    filled.done("PATCH", "/dirs/d", {"name": "first"}, if_match=known)
    refused = filled.send("PATCH", "/dirs/d", {"name": "second"}, if_match=known)
    assert (refused.status_code, refused.json()["type"]) == (412, "http://h/r/-/docs#precondition_failed")
    assert refused.headers["content-type"] == "application/json; charset=utf-8"
    assert filled.get("/dirs/d")["name"] == "first"
    assert filled.send("DELETE", "/dirs/d", if_match=f'"x", {tag(filled, "/dirs/d")}').status_code == 204


def test_a_tag_serves_all_forms_of_one_entity(filled: Api) -> None:
    # the tag of metadata, or of a compressed response, can be used to write the document
    for path, headers in (("/dirs/d/files/f$details", {}), ("/dirs/d/files/f?doc", {"accept_encoding": "gzip"})):
        known = tag(filled, path, **headers)
        filled.done("PUT", "/dirs/d/files/f", b"next", if_match=known)
        assert filled.send("PUT", "/dirs/d/files/f", b"lost", if_match=known).status_code == 412


def test_a_weak_tag_never_matches(filled: Api) -> None:
    # RFC 9110, "If-Match": a proxy that compresses makes a tag weak, and the error says so. One strong tag is enough.
    known = tag(filled, "/dirs/d")
    for method, if_match in (("GET", f"W/{known}"), ("PATCH", f"W/{known}"), ("PATCH", f'W/"x", W/{known}')):
        refused = filled.send(method, "/dirs/d", None if method == "GET" else {}, if_match=if_match)
        assert refused.status_code == 412
        assert refused.json() == {
            "type": "http://h/r/-/docs#precondition_failed",
            "title": 'For "/dirs/d", the condition in the HTTP header "If-Match" does not hold: a weak entity tag (W/) '
            "never matches; proxies that compress responses make tags weak.",
            "subject": "/dirs/d",
            "args": {
                "name": "If-Match",
                "error_detail": "a weak entity tag (W/) never matches; proxies that compress responses make tags weak",
            },
        }
    other = filled.send("PATCH", "/dirs/d", {}, if_match=f'W/{known}, "x"')
    assert other.json()["args"]["error_detail"] == "the entity is in another state"
    assert filled.send("PATCH", "/dirs/d", {}, if_match=f"W/{known}, {known}").status_code == 200


def test_a_tree_is_compared_with_the_whole_log(filled: Api) -> None:
    # a response with many entities has no single position, so any write may have changed one of them
    known = tag(filled, "/dirs/d?inline=*")
    filled.done("PATCH", "/dirs/e", {"name": "elsewhere"})
    assert filled.send("PATCH", "/dirs/d", {}, if_match=known).status_code == 412
    filled.done("DELETE", "/dirs", if_match=tag(filled, "/dirs"))


def test_writes_and_redirections_have_no_tag(filled: Api) -> None:
    # RFC 9110: what is stored differs from what was sent, so the response to a PUT has no validator
    assert "etag" not in filled.done("PUT", "/dirs/d", {}).headers
    filled.done("PUT", "/dirs/d/files/g$details", {"fileurl": "http://x/y"})
    assert "etag" not in filled.send("GET", "/dirs/d/files/g").headers
