"""Requests that are too large or malformed: a clear error, and nothing changes."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from annals.api.http.limits import read_body
from annals.api.http.request import Request
from annals.domain.errors.http_errors import BodyTooLarge
from tests.support.registries.in_process import Api, create, serving


@pytest.fixture
def small(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url, max_body=100) as api:
        yield api


def test_a_body_that_is_too_large(small: Api) -> None:
    small.done("PUT", "/dirs/d/files/f", b"x" * 100)
    answer = small.send("PUT", "/dirs/d/files/f", b"x" * 101)
    assert (answer.status_code, answer.json()["args"]) == (413, {"max_size": "100"})
    assert answer.json()["type"] == "http://h/r/-/docs#body_too_large"
    assert small.get("/dirs/d/files/f$details")["epoch"] == 1


@pytest.mark.parametrize("path", ["/dirs/d/files/f", "/dirs/d"])
def test_a_body_in_a_content_coding(api: Api, path: str) -> None:
    # HTTP-40: a document is the bytes that were sent; their content coding is not stored, so it is refused
    refused = api.send("PUT", path, gzip.compress(b"{}"), content_encoding="gzip")
    assert (refused.status_code, refused.json()["type"].partition("#")[2]) == (400, "bad_request")
    assert api.send("GET", path).status_code == 404
    assert api.send("PUT", path, b"{}", content_encoding="Identity").status_code == 201


def test_a_stream_is_cut_off_where_it_is_too_large() -> None:
    # without a Content-Length, reading stops at the limit
    read = 0

    async def endless() -> Any:
        nonlocal read
        read += 10
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    request = Request("PUT", "/", (), False, b"", [], "http://h")
    with pytest.raises(BodyTooLarge):
        asyncio.run(read_body(request, endless, 100))
    assert read == 110


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/%ff", 400),
        ("GET", "/dirs/%C0%AF", 400),
        ("PUT", "/dirs/%80", 400),
        ("GET", "/%zz", 404),
        ("PUT", "/dirs/%zz", 400),
        ("PUT", "/dirs/%00", 400),
        ("GET", "/dirs/%2e%2e/x", 404),
        ("GET", "//", 200),
        ("GET", "/dirs//files", 404),
        ("GET", "/" + "a" * 5000, 404),
        ("GET", "/?%ff=%zz&inline=%ff", 400),
        ("GET", "/-/", 200),
        ("GET", "/-/s/%ff", 400),
        ("GET", "/-/s/$details", 404),
    ],
)
def test_paths_that_are_odd(api: Api, method: str, path: str, status: int) -> None:
    # HTTP-10: a problem in the usual form, never a 500
    answer = api.send(method, path, {})
    assert answer.status_code == status, answer.text
    assert status == 200 or "type" in answer.json()


@pytest.mark.parametrize(
    "headers",
    [
        {"if_match": '"'},
        {"if_none_match": "W/"},
        {"accept_encoding": ";;q=,"},
        {"accept_encoding": "zstd;q=-1"},
        {"authorization": "Bearer"},
        {"origin": "\x7f"},
        {"forwarded": 'for="'},
        {"host": "a b"},
    ],
)
def test_headers_that_are_junk(api: Api, headers: dict[str, str]) -> None:
    assert api.send("GET", "/", **headers).status_code in (200, 412, 421)


@pytest.mark.parametrize("coding", ["gzip, chunked", "gzip", "identity"])
def test_transfer_codings(api: Api, coding: str) -> None:
    # HTTP-10: bytes that would be stored in their coding are refused
    answer = api.send("PUT", "/dirs/d/files/f", b"\x1f\x8b", transfer_encoding=coding)
    assert answer.status_code == 400 and "transfer coding" in answer.json()["args"]["error_detail"]


@pytest.mark.parametrize("view", ["history", "diff", "hash", "counts", "check", "compare", "resolved", "match"])
@pytest.mark.parametrize("path", ["dirs%2Fd", "dirs/d%2Ffiles", "%00", "%2F"])
def test_paths_below_the_views_of_the_server(store_url: str, view: str, path: str) -> None:
    # HTTP-10, TRAP-3: an encoded slash makes no segment; no database is asked for NUL
    create(store_url)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/d", {"files": {"f": {}}})
        method = "POST" if view in ("check", "match") else "GET"
        answer = api.send(method, f"/-/{view}/{path}{'?from=0' if view == 'diff' else ''}", {})
        assert answer.status_code in (400, 404), answer.text


def test_an_answer_that_inlines_too_much(sqlite_url: str) -> None:
    # FLAG-35: a response that is too large is refused before it begins; each collection alone is returned
    create(sqlite_url)
    with serving(sqlite_url, max_inlined=5) as api:
        api.done("PUT", "/dirs/d", {"files": {f"f{n}": {} for n in range(3)}})
        assert api.send("GET", "/?inline=dirs.files").status_code == 200
        for path in ("/?inline=*", "/export", "/dirs?inline=*"):
            answer = api.send("GET", path)
            problem = answer.json()
            assert (answer.status_code, problem["type"].partition("#")[2]) == (406, "too_large")
            assert problem["subject"] == path.partition("?")[0]
        assert len(api.get("/dirs/d/files")) == 3
