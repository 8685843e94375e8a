"""Hidden Groups: they read as ones that never existed, and a refused write reveals nothing about them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from annals.api.auth import rights_check
from annals.api.auth.files import periodic_tasks
from annals.api.feeds import feeds, reader
from annals.api.http.streaming import StreamingPool
from annals.api.registry.log_head_watcher import LogHeadWatcher
from tests.api.feeds.streams import reading
from tests.support.registries.in_process import Api, create, serving

TOKENS = {
    "root": {"name": "root", "role": "admin"},
    "reader": {"name": "reader", "role": "reader"},
    "part": {"name": "part", "groups": {"/dirs/seen": "writer", "/dirs/new-*": "writer", "/dirs/read": "reader"}},
    "other": {"name": "other", "groups": {"/dirs/shut": "reader"}},
    "none": {"name": "none"},
}
#: Names of the same length, so that responses have the same length.
HIDDEN, NOWHERE = "shut", "gone"


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    create(shared_store_url)
    with serving(shared_store_url, tokens=json.dumps(TOKENS)) as api:
        for group in ("seen", "read", HIDDEN):
            body = {"files": {"f": {"file": {"of": group}, "name": group}}}
            api.done("PUT", f"/dirs/{group}", body, authorization="Bearer root")
        yield api


def by(token: str, **headers: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "accept_encoding": "identity", **headers}


def without_name(answer: httpx.Response, name: str) -> tuple[int, list[tuple[str, str]], str]:
    """Status, headers and body of a response, without the name of its Group."""
    headers = [(key, value.replace(name, "*")) for key, value in answer.headers.items()]
    return answer.status_code, headers, answer.text.replace(name, "*")


@pytest.mark.parametrize(
    "path",
    [
        "/dirs/{}",
        "/dirs/{}?inline=*",
        "/dirs/{}?asof=5",
        "/dirs/{}/files",
        "/dirs/{}/files/f",
        "/dirs/{}/files/f$details",
        "/dirs/{}/files/f/meta",
        "/dirs/{}/files/f/versions/1?asof=5",
        "/-/history/dirs/{}",
        "/-/diff/dirs/{}?from=1",
        "/-/hash/dirs/{}",
        "/-/findings/dirs/{}",
    ],
)
def test_a_hidden_entity_reads_as_one_that_never_was(api: Api, path: str) -> None:
    # ACC-78: the same status, headers and body
    for headers in ({}, {"if_none_match": "*"}, {"if_match": '"x"'}):
        hidden, nowhere = (api.send("GET", path.format(id), **by("part", **headers)) for id in (HIDDEN, NOWHERE))
        assert hidden.status_code == 404
        assert without_name(hidden, HIDDEN) == without_name(nowhere, NOWHERE)


@pytest.mark.parametrize("token", ["part", "reader", "none"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/dirs/{}", {"name": "n"}),
        ("PATCH", "/dirs/{}", {"name": "n"}),
        ("PATCH", "/dirs/{}", {"epoch": 7}),
        ("DELETE", "/dirs/{}", None),
        ("DELETE", "/dirs/{}?epoch=7", None),
        ("POST", "/dirs", {"ID": {"name": "n"}}),
        ("POST", "/dirs", {"seen": {}, "ID": {"name": "n"}}),
        ("POST", "/", {"dirs": {"ID": {"epoch": 9}}}),
        ("DELETE", "/dirs", {"ID": {}}),
        ("PUT", "/dirs/{}/files/f", b"x"),
        ("PATCH", "/dirs/{}/files/f$details", {"epoch": 7}),
        ("PATCH", "/dirs/{}/files/f/meta", {"readonly": True}),
        ("POST", "/dirs/{}/files/f", b"x"),
        ("POST", "/dirs/{}/files/f/versions", {"1": {"name": "n"}}),
        ("DELETE", "/dirs/{}/files/f/versions/1", None),
        ("PUT", "/dirs/{}?dryrun", {"name": "n"}),
        ("POST", "/-/restore/dirs/{}?asof=4", None),
    ],
)
def test_a_write_to_a_hidden_group_is_refused_whether_it_exists_or_not(
    api: Api, token: str, method: str, path: str, body: Any
) -> None:
    # ACC-78, ACC-70: 403 for every kind of request, because the command is checked
    def answer(id: str, **headers: str) -> httpx.Response:
        text = body if body is None or isinstance(body, bytes) else json.dumps(body).replace("ID", id).encode()
        return api.send(method, path.format(id), text, **by(token, **headers))

    before = api.send("GET", "/-/log/head", **by("root")).json()
    for headers in ({}, {"if_match": '"x"'}):
        hidden, nowhere = answer(HIDDEN, **headers), answer(NOWHERE, **headers)
        assert hidden.status_code == 403, hidden.text
        assert without_name(hidden, HIDDEN) == without_name(nowhere, NOWHERE)
    assert api.send("GET", "/-/log/head", **by("root")).json() == before


def test_a_group_that_does_not_exist_yet_can_be_made_at_a_place(api: Api) -> None:
    # ACC-60: Groups that do not exist yet count
    assert api.send("PUT", "/dirs/New-1", {}, **by("part")).status_code == 201
    assert api.send("PUT", "/dirs/new2", {}, **by("part")).status_code == 403
    assert sorted(api.done("GET", "/dirs", **by("part")).json()) == ["New-1", "read", "seen"]
    assert api.send("DELETE", "/dirs/New-1", **by("part")).status_code == 204


def test_what_is_above_the_groups_is_read_in_full(api: Api) -> None:
    # ACC-72, ACC-73: the registry's own attributes, model, capabilities and OpenAPI
    for path in ("/model", "/modelsource", "/capabilities", "/capabilitiesoffered", "/-/openapi.json"):
        assert api.done("GET", path, **by("part")).content == api.done("GET", path, **by("reader")).content
    part, whole = (api.done("GET", "/", **by(token)).json() for token in ("part", "reader"))
    assert part == whole | {"dirscount": 2} and whole["dirscount"] == 3


def test_metrics_are_for_readers_of_the_registry(api: Api) -> None:
    # ACC-77
    statuses = [api.send("GET", "/-/metrics", **by(token)).status_code for token in ("root", "reader", "part", "none")]
    assert statuses == [200, 200, 403, 403]


def test_an_xref_needs_to_read_its_target_and_reading_follows_it(api: Api) -> None:
    # ACC-81: an xref to an unreadable target is 403; reading an xref needs no right to its target
    pointer = "/dirs/seen/files/pointer/meta"
    refused = [api.send("PUT", pointer, {"xref": f"/dirs/{id}/files/f"}, **by("part")) for id in (HIDDEN, NOWHERE)]
    assert [answer.status_code for answer in refused] == [403, 403]
    assert without_name(refused[0], HIDDEN) == without_name(refused[1], NOWHERE)
    api.done("PUT", pointer, {"xref": "/dirs/read/files/f"}, **by("part"))
    api.done("PUT", pointer, {"xref": f"/dirs/{HIDDEN}/files/f"}, **by("root"))
    assert api.done("GET", "/dirs/seen/files/pointer", **by("part")).json() == {"of": HIDDEN}
    assert api.send("GET", f"/dirs/{HIDDEN}/files/f", **by("part")).status_code == 404
    api.done("DELETE", "/dirs/seen/files/pointer", **by("root"))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/dirs/seen", {"labels": {"xref": "JIRA-1"}}, 200),
        ("/dirs/seen/files/own$details", {"file": {"xref": f"/dirs/{HIDDEN}/files/f"}}, 200),
        ("/dirs/seen/files/own/meta", {"labels": {"xref": "JIRA-1"}}, 200),
        ("/dirs/seen/files/own/meta", {"xref": "JIRA-1"}, 400),
        ("/dirs/seen/files/own$details", {"meta": {"xref": f"/dirs/{HIDDEN}/files/f"}}, 403),
        ("/dirs/seen", {"files": {"own": {"meta": {"xref": f"/dirs/{HIDDEN}/files/f"}}}}, 403),
    ],
)
def test_only_an_xref_is_one(api: Api, path: str, body: Any, status: int) -> None:
    # ACC-81: a label or a member of a document may have the name, and a malformed xref is refused as such
    api.done("PUT", "/dirs/seen/files/own$details", {}, **by("part"))
    assert api.send("PATCH", path, body, **by("part")).status_code == status
    for prefix, wrapped in (("/dirs", {"seen": body}), ("/", {"dirs": {"seen": body}})):
        if path == "/dirs/seen":
            assert api.send("POST", prefix, wrapped, **by("part")).status_code == status
    api.done("DELETE", "/dirs/seen/files/own", **by("part"))


def test_the_past_is_read_under_the_rights_of_today(store_url: str) -> None:
    # ACC-80: past rights of the caller do not count
    create(store_url)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        api.done("PUT", "/dirs/seen", {}, **by("root"))
        api.done("PUT", f"/dirs/{HIDDEN}", {}, **by("root"))
        position = api.send("GET", "/", **by("root")).headers["annals-position"]
        assert list(api.done("GET", f"/dirs?asof={position}", **by("part")).json()) == ["seen"]
    swapped = {**TOKENS, "part": TOKENS["other"], "other": TOKENS["part"]}
    with serving(store_url, tokens=json.dumps(swapped)) as api:
        assert list(api.done("GET", f"/dirs?asof={position}", **by("part")).json()) == [HIDDEN]


def test_answers_to_a_credential_are_private(api: Api) -> None:
    # ACC-82: regardless of the other directives for caches
    position = api.send("GET", "/", **by("root")).headers["annals-position"]
    for path in (
        "/",
        "/dirs/seen",
        f"/dirs?asof={position}",
        "/dirs/seen/files/f",
        "/-/events",
        "/dirs/shut",
        "/-/livez",
    ):
        for headers in (by("part"), by("part", if_none_match="*"), by("bad"), {"cookie": "annals=x"}):
            answer = api.send("GET", path, **headers)
            assert "private" in answer.headers["cache-control"], (path, headers)
            assert {"authorization", "cookie"} <= {part.strip() for part in answer.headers["vary"].lower().split(",")}
    directives = api.send("GET", f"/dirs/seen?asof={position}", **by("part")).headers["cache-control"]
    assert directives == "private, max-age=31536000, immutable"
    assert "private" not in api.send("GET", "/-/livez").headers.get("cache-control", "")


def test_equal_tags_mean_equal_bytes_across_callers(api: Api) -> None:
    # ACC-82: an entity tag for one caller matches for another only if the bytes are equal
    link = {"id": "l", "url": "https://other.example", "enabled": False}
    api.done("POST", "/-/links", link, authorization="Bearer root")  # which only administrators see
    bodies: dict[tuple[str, str], bytes] = {}
    for path in (
        "/",
        "/dirs",
        "/export",
        "/dirs/seen",
        "/dirs/read/files",
        "/-/log/head",
        "/-/history/model",
        "/-/history/?below",
        "/-/interactions",
        "/-/diff/?from=1",
        "/-/references/dirs/seen",
        "/model",
    ):
        for token in ("root", "reader", "part", "other"):
            answer = api.send("GET", path, **by(token))
            if answer.status_code == 200 and "etag" in answer.headers:
                key = (path, answer.headers["etag"])
                assert bodies.setdefault(key, answer.content) == answer.content, (path, token)
                other = api.send("GET", path, **by("other", if_none_match=answer.headers["etag"]))
                assert other.status_code in (200, 404) or other.headers["etag"] == answer.headers["etag"]
    assert len(bodies) > 8


@pytest.mark.parametrize("left", [{}, {"c": {"name": "c", "groups": {"/dirs/a": "reader"}}}], ids=["none", "fewer"])
@pytest.mark.parametrize("feed", ["/-/events", "/-/log"])
def test_a_stream_ends_when_its_reader_has_other_rights(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feed: str, left: dict[str, Any]
) -> None:
    # ACC-83: a stream checks the rights of its reader again, also without events, and ends after they have changed
    for module in (feeds, rights_check):
        monkeypatch.setattr(module, "RIGHTS_SECONDS", 0.05)
    monkeypatch.setattr(periodic_tasks, "INTERVAL", 0.05)
    known = {"root": {"name": "root", "role": "admin"}}
    more = {"c": {"name": "c", "groups": {"/dirs/a": "reader", "/dirs/b": "reader"}}}
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(known | more))
    create(sqlite_url)

    async def follow(api: Api) -> None:
        root = {"authorization": "Bearer root"}
        async with reading(api, feed, authorization="Bearer c") as stream:
            await api.client.put("/dirs/b", json={}, headers=root)
            await stream.until(1)
            await asyncio.sleep(0.2)
            await api.client.patch("/dirs/b", json={}, headers=root)
            assert len(await stream.until(2)) >= 2, "rights that stay the same end no stream"
            (tmp_path / "new").write_text(json.dumps(known | left))
            (tmp_path / "new").replace(file)
            await asyncio.wait_for(stream.ended.wait(), 60)

    with serving(sqlite_url, tokens=str(file)) as api:
        api.runner.run(follow(api))


def test_a_whole_log_breaks_off_when_its_reader_has_other_rights(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # ACC-47, ACC-83: a slow reader of a long answer gets no more of it, and sees that it is not complete
    monkeypatch.setattr(rights_check, "RIGHTS_SECONDS", 0.0)
    monkeypatch.setattr(reader, "MAX_PIECE_POSITIONS", 1)
    known = {"root": {"name": "root", "role": "admin"}}
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(known | {"c": {"name": "c", "role": "reader"}}))
    create(sqlite_url)
    with serving(sqlite_url, tokens=str(file)) as api:
        for number in range(40):
            api.done("PUT", f"/dirs/d{number}", {}, authorization="Bearer root")
        ndjson = {"authorization": "Bearer c", "accept": "application/x-ndjson"}
        whole = api.send("GET", "/-/log", **ndjson)
        first = feeds.Feeds._first_piece

        async def revoked_after_the_first_piece(*arguments: Any) -> Any:
            found = await first(*arguments)
            file.write_text(json.dumps(known))
            await api.app.state.periodic_tasks.run_once()
            return found

        monkeypatch.setattr(feeds.Feeds, "_first_piece", revoked_after_the_first_piece)
        part = api.send("GET", "/-/log", **ndjson)
        assert (whole.status_code, part.status_code) == (200, 401), "the short body has not been sent yet"
        assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("path", ["/export", "/dirs?inline", "/dirs/a/files", "/-/interactions", "/-/history/dirs/a"])
def test_a_long_answer_breaks_off_when_its_reader_has_other_rights(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    # ACC-47, ACC-83: also one that a thread makes
    monkeypatch.setattr(rights_check, "RIGHTS_SECONDS", 0.0)
    monkeypatch.setattr("annals.api.xregistry.reading.CHUNK_SIZE", 1)
    known = {"root": {"name": "root", "role": "admin"}}
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(known | {"c": {"name": "c", "role": "reader"}}))
    create(sqlite_url)
    with serving(sqlite_url, tokens=str(file)) as api:
        long = {"description": "d" * 1000}
        api.done("PUT", "/dirs/a", {"files": {f"f{n}": long for n in range(200)}}, authorization="Bearer root")
        for number in range(200):
            api.done("PATCH", "/dirs/a", {"labels": {"n": f"{number}"}, **long}, authorization="Bearer root")
        whole = api.send("GET", path, authorization="Bearer c")
        start = StreamingPool.start

        async def revoked_after_the_head(*arguments: Any) -> Any:
            found = await start(*arguments)
            file.write_text(json.dumps(known))
            await api.app.state.periodic_tasks.run_once()
            return found

        monkeypatch.setattr(StreamingPool, "start", revoked_after_the_head)
        assert whole.status_code == 200
        with pytest.raises(AssertionError):  # of the transport that gets no end of the body, or of the status 401
            assert api.send("GET", path, authorization="Bearer c").status_code == 200


@pytest.mark.parametrize("feed", ["/-/events", "/-/log"])
def test_a_long_poll_ends_when_its_reader_has_other_rights(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feed: str
) -> None:
    # ACC-65, ACC-83: what happens after the rights have ended is not in the answer
    monkeypatch.setattr(rights_check, "RIGHTS_SECONDS", 0.05)
    monkeypatch.setattr(periodic_tasks, "INTERVAL", 0.05)
    known = {"root": {"name": "root", "role": "admin"}}
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(known | {"c": {"name": "c", "groups": {"/dirs/a": "reader"}}}))
    create(sqlite_url)

    async def poll(api: Api) -> None:
        root, reader = ({"authorization": f"Bearer {token}"} for token in ("root", "c"))
        head = (await api.client.put("/dirs/a", json={}, headers=root)).headers["annals-position"]
        waiting = asyncio.create_task(api.client.get(f"{feed}?after={head}&wait=20", headers=reader))
        following: LogHeadWatcher = api.app.state.stop_following.__self__
        while not following.waiting:
            await asyncio.sleep(0.01)
        (tmp_path / "new").write_text(json.dumps(known))
        (tmp_path / "new").replace(file)
        while (await api.client.get("/dirs/a", headers=reader)).status_code == 200:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        await api.client.patch("/dirs/a", json={"name": "secret"}, headers=root)
        answer = await asyncio.wait_for(waiting, 60)
        assert answer.status_code == 200 and "/dirs/a" not in answer.text

    with serving(sqlite_url, tokens=str(file)) as api:
        api.runner.run(poll(api))
