"""The flag `asof`: the moments that it can name, responses about the past, and requests that must not have it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import text

from annals.commands.store.log import Store
from annals.projections.entities.rebuild import rebuild
from tests.support.registries.in_process import BASE, MODEL, NOW, Api, create, serving

PATHS = (
    *("/", "/dirs", "/dirs/d", "/dirs/d/files", "/dirs/d/files/f", "/dirs/d/files/f$details", "/dirs/d/files/f/meta"),
    *("/dirs/d/files/f/versions", "/dirs/d/files/f/versions/1", "/export", "/model", "/modelsource"),
    *("/capabilities", "/capabilitiesoffered", "/?inline", "/dirs?filter=name=first", "/dirs?sort=name&limit=1"),
)
POINTED = (
    *("/dirs/d/files/p", "/dirs/d/files/p$details?inline=versions", "/dirs/d/files/p/versions", "/dirs/d/files"),
    *("/dirs/d/files/p/versions/1", "/dirs/d?inline", "/export", "/dirs/d/files?limit=2&inline=versions"),
    *("/dirs/d/files?filter=versions.versionid=1&inline", "/dirs/d/files?sort=fileid=desc"),
    *("/dirs/d/files/p/versions?filter=versionid=1", "/dirs/d/files?doc&filter=meta.xref"),
    *("/dirs/d/files/p/versions?sort=versionid=desc", "/dirs/d/files/p/versions?limit=1&inline"),
    *("/dirs/d/files/p/versions?sort=name", "/dirs/d/files/p/versions?filter=name&sort=name=desc&limit=1"),
)

REFUSED = {
    **dict.fromkeys(("", "-1", "1.5", "1" * 20, "2026-01-02", "id6"), "nor the correlation id of an interaction"),
    "9" * 19: "the log ends at position",
    "2026-13-02T00:00:00Z": "month",
    "2026-01-02T03:04:06Z": "in the future",
}


@pytest.fixture
def api_with_history(api: Api) -> Api:
    """Group d is created (id1), named (id2), given a file (id3) and deleted (id5); id4 creates another Group."""
    api.done("PUT", "/dirs/d", {})
    api.done("PATCH", "/dirs/d", {"name": "first"})
    api.done("PUT", "/dirs/d/files/f", b"one", content_type="text/plain")
    api.done("PUT", "/dirs/e", {})
    api.done("DELETE", "/dirs/d")
    return api


@pytest.fixture
def last(api_with_history: Api, sqlite_url: str) -> dict[str, int]:
    """The last position of each interaction."""
    return ends(sqlite_url)


def ends(url: str) -> dict[str, int]:
    store = Store(url)
    with store.engine.connect() as connection:
        found = connection.execute(text("SELECT xregcorrelationid, last FROM interaction ORDER BY last")).all()
    store.close()
    return {row[0]: row[1] for row in found}


def as_of(path: str, asof: str | int) -> str:
    return f"{path}{'&' if '?' in path else '?'}asof={asof}"


def refused(api: Api, method: str, path: str, body: Any = None) -> tuple[int, str]:
    answer = api.send(method, path, body)
    return answer.status_code, answer.json()["type"].split("#")[1]


def name_at(api: Api, asof: str | int) -> Any:
    answer = api.send("GET", f"/dirs/d?asof={asof}")
    return answer.json().get("name", "unnamed") if answer.status_code == 200 else answer.json()["type"].split("#")[1]


def test_a_moment_has_three_kinds_of_names(api_with_history: Api, last: dict[str, int]) -> None:
    # FLAG-80: a position, an RFC 3339 time or a correlation id; it includes the interactions that ended by then
    names = {"id1": "unnamed", "id2": "first", "id3": "first", "id4": "first", "id5": "not_found"}
    assert {id: name_at(api_with_history, id) for id in names} == names
    assert {id: name_at(api_with_history, last[id]) for id in names} == names
    assert {id: name_at(api_with_history, last[id] - 1) for id in ("id1", "id2", "id5")} == {
        "id1": "not_found",  # a part of an interaction does not count
        "id2": "unnamed",
        "id5": "first",
    }
    assert name_at(api_with_history, "ID2") == "first"  # EV-25: correlation ids ignore case
    assert api_with_history.get(f"/?asof={NOW}")["epoch"] == api_with_history.get("/")["epoch"]
    assert api_with_history.get("/?asof=2026-01-02T05:04:05%2B02:00")["epoch"] == api_with_history.get("/")["epoch"]
    assert api_with_history.get("/?asof=2026-01-02T05:04:05+02:00")["epoch"] == api_with_history.get("/")["epoch"]


def test_what_names_no_moment_is_refused(api_with_history: Api) -> None:
    # FLAG-80: a malformed or unknown moment, or one beyond the head, is bad_request; the error repeats the value
    for path in PATHS:
        for asof, why in REFUSED.items():
            answer = api_with_history.send("GET", as_of(path, asof))
            assert (answer.status_code, answer.json()["type"].split("#")[1]) == (400, "bad_request")
            detail = answer.json()["args"]["error_detail"]
            assert detail.startswith(f'"asof={asof}" names no moment') and why in detail


def test_before_the_registry_there_was_nothing(api_with_history: Api) -> None:
    # FLAG-80: what did not exist at the moment is not_found
    for path in PATHS:
        for asof in ("0", "2025-12-31T23:59:59Z"):
            assert refused(api_with_history, "GET", as_of(path, asof)) == (404, "not_found")


def test_it_is_for_reads(api_with_history: Api) -> None:
    # FLAG-81: asof on a write is refused, and nothing changes; it does not combine with flags of writes
    before = api_with_history.get("/export")
    for path in PATHS:
        for method in ("PUT", "PATCH", "POST", "DELETE"):
            status, type = refused(api_with_history, method, as_of(path, "id3"), {})
            assert status in (400, 405) and type in ("bad_flag", "action_not_supported", "details_required")
        for flag in ("setdefaultversionid=1", "epoch=1", "ignore", "asof=id2"):
            assert refused(api_with_history, "GET", f"{as_of(path, 'id3')}&{flag}") == (400, "bad_flag"), (path, flag)
    assert api_with_history.get("/export") == before


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "DELETE"])
def test_a_write_names_the_flag_that_it_does_not_take(api_with_history: Api, method: str) -> None:
    # FLAG-81: the answer to a write with asof says which flag is bad
    answer = api_with_history.send(method, "/dirs/e?asof=id4", {"name": "other"} if method != "POST" else {})
    assert (answer.status_code, answer.json()["args"]) == (400, {"flag": "asof"})
    assert api_with_history.get("/dirs/e")["epoch"] == 1


def test_an_answer_about_the_past(api_with_history: Api) -> None:
    # FLAG-82: the entity as it was then, with links that keep the moment
    assert api_with_history.get("/dirs/d?asof=id3") == {
        "dirid": "d",
        "self": f"{BASE}/dirs/d?asof=id3",
        "xid": "/dirs/d",
        "epoch": 3,
        "name": "first",
        "createdat": NOW,
        "modifiedat": NOW,
        "filesurl": f"{BASE}/dirs/d/files?asof=id3",
        "filescount": 1,
        "notesurl": f"{BASE}/dirs/d/notes?asof=id3",
        "notescount": 0,
    }
    resource = api_with_history.get("/dirs/d/files/f$details?asof=id3&inline=meta")
    url = f"{BASE}/dirs/d/files/f"
    assert {name: value for name, value in resource.items() if "url" in name or name == "self"} == {
        "self": f"{url}$details?asof=id3",
        "metaurl": f"{url}/meta?asof=id3",
        "versionsurl": f"{url}/versions?asof=id3",
    }
    assert resource["meta"]["self"] == f"{url}/meta?asof=id3"
    assert resource["meta"]["defaultversionurl"] == f"{url}/versions/1$details?asof=id3"


def test_a_document_of_the_past(api_with_history: Api) -> None:
    # FLAG-82: a past document has the bytes and headers of the moment; the URLs in the headers keep the moment
    answer = api_with_history.done("GET", "/dirs/d/files/f?asof=id3")
    url = f"{BASE}/dirs/d/files/f"
    assert (answer.content, answer.headers["content-type"]) == (b"one", "text/plain")
    assert {name: value for name, value in answer.headers.items() if BASE in value and name != "link"} == {
        "content-location": f"{url}/versions/1?asof=id3",
        "xregistry-self": f"{url}?asof=id3",
        "xregistry-metaurl": f"{url}/meta?asof=id3",
        "xregistry-versionsurl": f"{url}/versions?asof=id3",
    }


def test_a_document_that_is_elsewhere(api: Api) -> None:
    # FLAG-82: a document stored elsewhere is not part of this registry's past, so its URL stays as it is
    api.done("PUT", "/dirs/d/files/f$details", {"fileurl": "http://elsewhere/x"})
    api.done("DELETE", "/dirs/d/files/f")
    answer = api.send("GET", "/dirs/d/files/f?asof=id1")
    assert (answer.status_code, answer.headers["location"]) == (303, "http://elsewhere/x")
    assert answer.headers["memento-datetime"] == "Fri, 02 Jan 2026 03:04:05 GMT"


def test_past_responses_name_their_time_and_the_present(api_with_history: Api) -> None:
    # FLAG-82: Memento-Datetime, the URL of the present as Link, no correlation id; HEAD has the same headers
    for path in PATHS:
        past = as_of(path, "id3")
        answer, head = (api_with_history.done(method, past, accept_encoding="identity") for method in ("GET", "HEAD"))
        assert answer.headers["memento-datetime"] == "Fri, 02 Jan 2026 03:04:05 GMT"
        assert f"<{BASE}{path}>;rel=original" in answer.headers["link"]
        assert f"<{BASE}>;rel=xregistry-root" in answer.headers["link"]
        assert "xregistry-xregcorrelationid" not in answer.headers
        both = [pair for pair in answer.headers.multi_items() if pair[0] != "content-length"]
        assert [pair for pair in head.headers.multi_items() if pair[0] != "content-length"] == both
        assert head.content == b""


def test_present_responses_have_no_asof_headers(api_with_history: Api) -> None:
    # FLAG-82: only responses about the past have a date and a link to the present
    answer = api_with_history.done("GET", "/dirs/e")
    assert "memento-datetime" not in answer.headers and "original" not in answer.headers["link"]


def test_a_closed_moment_is_kept(api_with_history: Api) -> None:
    # FLAG-82, HTTP-8: a past moment cannot change, so its tag stays; at the current time there may be more writes
    for path in (path for path in PATHS if path != "/capabilitiesoffered"):
        answer = api_with_history.done("GET", as_of(path, "id3"))
        tag, dated = answer.headers["etag"], answer.headers["memento-datetime"]
        api_with_history.done("PATCH", "/dirs/e", {"name": path})
        again = api_with_history.send("GET", as_of(path, "id3"), if_none_match=tag)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["memento-datetime"] == dated
        assert answer.headers["cache-control"] == again.headers["cache-control"] == "max-age=31536000, immutable"
        assert api_with_history.send("GET", as_of(path, "id3"), if_match='"other.1"').status_code == 412
    assert api_with_history.done("GET", f"/dirs/e?asof={NOW}").headers["cache-control"] == "no-cache"


def test_the_parameter_may_be_written_in_any_way(api_with_history: Api) -> None:
    # FLAG-82: links repeat the moment, encoded so that any client can follow them
    sent = api_with_history.get("/dirs?%61sof=2026-01-02T05:04:05%2b02:00")
    assert sent["e"]["self"] == f"{BASE}/dirs/e?asof=2026-01-02T05:04:05%2B02:00"
    assert api_with_history.get(sent["e"]["filesurl"].removeprefix(BASE)) == {}
    details = api_with_history.done("HEAD", "/dirs/d/files/f?asof=id3&x=%3E%22").headers["link"]
    assert f"<{BASE}/dirs/d/files/f?x=%3E%22>;rel=original" in details


def test_filters_leave_their_traces_in_links(api_with_history: Api) -> None:
    # FLAG-82: a collection's URL has the rest of the filter and the moment
    found = api_with_history.get("/?filter=dirs.name=first&asof=id3")
    assert (found["dirsurl"], found["dirscount"]) == (f"{BASE}/dirs?filter=name=first&asof=id3", 1)
    headers = api_with_history.done("GET", "/dirs/d/files/f?filter=versions.versionid=1&asof=id3").headers
    assert headers["xregistry-versionsurl"] == f"{BASE}/dirs/d/files/f/versions?filter=versionid=1&asof=id3"


def test_pages_stay_in_their_past(api_with_history: Api) -> None:
    # FLAG-82, PAG-6: links between pages keep the moment; a cursor is refused with another moment
    first = api_with_history.done("GET", "/dirs?limit=1&asof=id4")
    link = next(part for part in first.headers["link"].split(", ") if "rel=next" in part)
    following = link[1 : link.index(">")].removeprefix(BASE)
    assert "asof=id4" in following and link.endswith("count=2")
    api_with_history.done("PUT", "/dirs/d5", {})
    assert list(api_with_history.get(following)) == ["e"]
    assert refused(api_with_history, "GET", following.replace("asof=id4", "asof=id2")) == (400, "bad_request")
    assert refused(api_with_history, "GET", following.replace("asof=id4&", "")) == (400, "bad_request")


def test_pages_of_a_time_that_is_now_stay_in_theirs(api_with_history: Api) -> None:
    # FLAG-80, PAG-7: later writes may have the same time; all pages show the state that the first page shows
    api_with_history.done("PUT", "/dirs/g", {})
    first = api_with_history.done("GET", f"/dirs?limit=1&asof={NOW}")
    link = next(part for part in first.headers["link"].split(", ") if "rel=next" in part)
    for group in "fh":
        api_with_history.done("PUT", f"/dirs/{group}", {})
    assert list(first.json()) == ["e"]
    assert list(api_with_history.get(link[1 : link.index(">")].removeprefix(BASE))) == ["g"]
    assert list(api_with_history.get(f"/dirs?asof={NOW}")) == ["e", "f", "g", "h"]


def test_the_model_of_then(api: Api) -> None:
    # FLAG-82: paths, attributes and filters follow the model of the moment
    boxes = {"groups": {**MODEL["groups"], "boxes": {"singular": "box", "attributes": {"size": {"type": "integer"}}}}}
    api.done("PUT", "/modelsource", boxes)  # id1
    api.done("PUT", "/boxes/b", {"size": 3})  # id2
    live = api.get("/model")
    api.done("DELETE", "/boxes/b")  # id3
    api.done("PUT", "/modelsource", MODEL)  # id4
    assert refused(api, "GET", "/boxes/b") == (404, "not_found")
    assert api.get("/boxes/b?asof=id2")["size"] == 3
    assert list(api.get("/boxes?filter=size>2&sort=size&asof=id2")) == ["b"]
    assert api.get("/model?asof=id2") == live
    assert "boxescount" in api.get("/?asof=id1") and "boxescount" not in api.get("/?asof=id4")
    assert refused(api, "GET", "/boxes/b?asof=id4") == (404, "not_found")


def test_the_capabilities_of_then(api: Api) -> None:
    # FLAG-82: flags and available paths are those of the moment, whether they are on or off now
    api.done("PUT", "/dirs/d", {"name": "n"})  # id1
    everything = {"available": api.get("/capabilities")["available"], "flags": ["*"]}
    less = {name: how for name, how in everything["available"].items() if name != "export"}
    api.done("PATCH", "/capabilities", {"flags": ["doc"], "available": less, "shortself": True})  # id2
    assert list(api.get("/dirs?filter=name=other")) == ["d"]
    assert list(api.get("/dirs?filter=name=other&asof=id1")) == []
    assert api.get("/export?asof=id1")["dirs"]["d"]["name"] == "n"
    assert refused(api, "GET", "/export?asof=id2") == (400, "not_available")
    assert "shortself" in api.get("/dirs/d?asof=id2") and "shortself" not in api.get("/dirs/d?asof=id1")
    assert "asof" not in api.get("/dirs/d?asof=id2")["shortself"]
    api.done("PATCH", "/capabilities", everything)  # id3
    assert list(api.get("/dirs?filter=name=other&asof=id2")) == ["d"]


def test_no_capability_lists_it(api: Api) -> None:
    # FLAG-84: neither asof nor dryrun is among the flags, on or offered, and neither can be switched off
    offered = api.get("/capabilitiesoffered")["flags"]["enum"]
    assert not {"asof", "dryrun"} & {*api.get("/capabilities")["flags"], *offered}
    api.done("PATCH", "/capabilities", {"flags": []})
    api.done("PUT", "/dirs/d", {})
    assert refused(api, "GET", "/dirs/d?asof=id1") == (404, "not_found")


def test_recreation_with_another_spelling(api: Api) -> None:
    # FLAG-80, ENT-31: each spelling is found at the moments at which it existed; a filter finds both
    for method, path in (("PUT", "/dirs/d"), ("DELETE", "/dirs/d"), ("PUT", "/dirs/D"), ("DELETE", "/dirs/D")):
        api.done(method, path, {} if method == "PUT" else None)
    found = {
        (spelling, id): api.send("GET", f"/dirs/{spelling}?asof={id}").status_code
        for spelling in "dD"
        for id in ("id1", "id2", "id3", "id4")
    }
    assert [pair for pair, status in found.items() if status == 200] == [("d", "id1"), ("D", "id3")]
    assert [list(api.get(f"/dirs?asof=id{n}")) for n in (1, 2, 3, 4)] == [["d"], [], ["D"], []]
    assert list(api.get("/dirs?asof=id3&filter=dirid=d&sort=dirid=desc")) == ["D"]


def test_pruned_versions_are_there_when_they_lived(api: Api) -> None:
    # FLAG-80: a Version that a limit on Versions has removed is found at earlier moments, with its document
    files = MODEL["groups"]["dirs"]["resources"]["files"]
    for version in ("1", "2", "3"):
        api.done("PUT", f"/dirs/d/files/f/versions/{version}", f"v{version}".encode())
    source = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {**files, "maxversions": 1}}}}}
    api.done("PUT", "/modelsource", source)
    assert list(api.get("/dirs/d/files/f/versions")) == ["3"]
    assert list(api.get("/dirs/d/files/f/versions?asof=id3")) == ["1", "2", "3"]
    assert api.done("GET", "/dirs/d/files/f/versions/1?asof=id3").content == b"v1"
    assert api.done("GET", "/dirs/d/files/f?asof=id2").content == b"v2"


def test_a_pointer_shows_its_target_of_then(api: Api) -> None:
    # FLAG-82, ENT-137: a Resource shows the target that its xref had then, as the target was then, on all paths
    api.done("PUT", "/dirs/d/files/f", b"one")  # id1
    api.done("PUT", "/dirs/d/files/p/meta", {"xref": "/dirs/d/files/f"})  # id2
    live = {path: api.send("GET", path).content for path in POINTED}
    api.done("PUT", "/dirs/d/files/f/versions/2", b"two")
    api.done("PATCH", "/dirs/d/files/p/meta", {"xref": None})
    api.done("DELETE", "/dirs/d")
    for path, content in live.items():
        then = api.send("GET", as_of(path, "id2")).content
        assert then.replace(b"?asof=id2", b"").replace(b"&asof=id2", b"") == content, path


def test_a_pointer_of_then_has_no_versions_in_a_document_view(api: Api) -> None:
    # FLAG-82: errors depend on the state of the moment as well
    api.done("PUT", "/dirs/d/files/f", b"one")
    api.done("PUT", "/dirs/d/files/p/meta", {"xref": "/dirs/d/files/f"})
    api.done("PATCH", "/dirs/d/files/p/meta", {"xref": None})
    assert refused(api, "GET", "/dirs/d/files/p/versions?doc&asof=id2") == (400, "cannot_doc_xref")
    assert api.send("GET", "/dirs/d/files/p/versions?doc&asof=id3").status_code == 200


def test_the_base_url_is_of_today(api_with_history: Api, sqlite_url: str) -> None:
    # FLAG-82: a registry with a new public URL uses it in responses about the past
    before = api_with_history.get("/dirs/d?asof=id3&inline")
    with serving(sqlite_url, "https://new.example", ids="later") as moved:
        found = moved.get("/dirs/d?asof=id3&inline")
        assert found["self"] == "https://new.example/dirs/d?asof=id3"
        assert json.loads(json.dumps(found).replace("https://new.example", BASE)) == before


def test_a_rebuilt_read_model_has_the_same_past(api_with_history: Api, sqlite_url: str) -> None:
    # FLAG-82, P-14: a rebuilt read model gives the same responses about the past, byte for byte
    before = [api_with_history.send("GET", f"/export?asof=id{n}").content for n in range(1, 6)]
    store = Store(sqlite_url)
    rebuild(store)
    store.close()
    assert [api_with_history.send("GET", f"/export?asof=id{n}").content for n in range(1, 6)] == before


def test_readers_of_a_group_can_read_its_past(store_url: str) -> None:
    # FLAG-80: a caller may read the past of a deleted Group if its role covers the Group, and of no other Group
    create(store_url)
    tokens = {"write": {"name": "walt", "role": "writer"}, "one": {"name": "gina", "groups": {"/dirs/d": "reader"}}}
    with serving(store_url, tokens=json.dumps(tokens)) as api:
        for group in "de":
            api.done("PUT", f"/dirs/{group}/files/f", b"x", authorization="Bearer write")
        for group in "de":
            api.done("DELETE", f"/dirs/{group}", authorization="Bearer write")
        found = {
            path: api.send("GET", f"{path}?asof=id2", authorization="Bearer one").status_code
            for path in ("/dirs/d", "/dirs/d/files/f", "/dirs/e", "/dirs/e/files/f", "/dirs", "/export", "/model")
        }
    assert found == {
        **{"/dirs/d": 200, "/dirs/d/files/f": 200, "/model": 200},
        **{"/dirs/e": 404, "/dirs/e/files/f": 404, "/dirs": 200, "/export": 200},
    }
