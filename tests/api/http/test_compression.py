"""Compressed responses: JSON of this server, in the coding that the client prefers."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
import zstandard

from annals.api.http.compression import THREAD_SIZE, choose_coding
from tests.support.registries.in_process import Api

PLAIN: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: zlib.decompress(body, 31),
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
}


def raw_answer(api: Api, path: str, accepted: str) -> tuple[dict[str, str], bytes]:
    """Headers and bytes of a response, which the client does not decode."""

    async def send() -> tuple[dict[str, str], bytes]:
        async with api.client.stream("GET", path, headers={"accept-encoding": accepted}) as answer:
            return dict(answer.headers), b"".join([part async for part in answer.aiter_raw()])

    return api.runner.run(send())


@pytest.mark.parametrize("coding", PLAIN)
@pytest.mark.parametrize("path", ["/model", "/export", "/?inline=*,model"])
def test_large_answers_are_compressed(api: Api, path: str, coding: str) -> None:
    # both whole and streamed ones
    headers, body = raw_answer(api, path, coding)
    plain, expected = raw_answer(api, path, "identity")
    assert (headers["content-encoding"], headers["vary"], plain["vary"]) == (coding, *["accept-encoding"] * 2)
    assert "content-encoding" not in plain
    assert PLAIN[coding](body) == expected
    assert len(body) < len(expected) / 2


def test_a_stream_of_many_chunks(api: Api) -> None:
    api.done("PATCH", "/dirs", {f"d{n}": {"description": f"{n} " * 300} for n in range(400)})
    expected = raw_answer(api, "/dirs", "identity")[1]
    assert len(expected) > 3 * THREAD_SIZE
    assert {PLAIN[coding](raw_answer(api, "/dirs", coding)[1]) for coding in PLAIN} == {expected}


def test_each_coding_has_its_own_tag(api: Api) -> None:
    # RFC 9110: a strong tag belongs to one sequence of bytes; If-None-Match accepts the tags of all codings
    tags = {accepted: raw_answer(api, "/model", accepted)[0]["etag"] for accepted in ("identity", *PLAIN)}
    assert len(set(tags.values())) == 3
    for tag in tags.values():
        assert api.send("GET", "/model", if_none_match=tag, accept_encoding="zstd").status_code == 304


def test_small_answers_and_documents_go_as_they_are(api: Api) -> None:
    # HTTP-40: a document is returned byte for byte
    document = b'{"a": "' + b"x" * 5000 + b'"}'
    api.done("PUT", "/dirs/d/files/f", document, content_type="application/json; charset=utf-8")
    for path in ("/dirs/d", "/dirs/d/files/f"):
        headers, _ = raw_answer(api, path, "gzip, zstd")
        assert "content-encoding" not in headers
    assert raw_answer(api, "/dirs/d/files/f", "gzip")[1] == document


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1.0, zstd;q=0.5", "gzip"),
        ("*", "zstd"),
        ("*, zstd;q=0", "gzip"),
        ("GZIP", "gzip"),
        ("identity", None),
        ("br", None),
        ("gzip;q=0", None),
        ("gzip;q=nonsense", None),
        ("", None),
    ],
)
def test_the_client_decides(accepted: str, coding: str | None) -> None:
    # RFC 9110: weights count; without a coding that the server has, the response is not compressed
    assert choose_coding(accepted) == coding


@pytest.mark.parametrize("coding", PLAIN)
@pytest.mark.parametrize("path", ["/-/log", "/-/events", "/-/history?below", "/-/history?below&format=csv"])
def test_responses_about_the_past_are_compressed(api: Api, path: str, coding: str) -> None:
    api.done("PATCH", "/dirs", {f"d{n}": {} for n in range(20)})
    headers, body = raw_answer(api, path, coding)
    assert headers["content-encoding"] == coding
    assert PLAIN[coding](body) == raw_answer(api, path, "identity")[1]
