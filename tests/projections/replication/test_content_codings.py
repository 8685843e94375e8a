"""Content codings of answers: gzip and zstd are read, in steps, so that no small answer fills the memory (LEG-1108)."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import pytest
import zstandard

from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.replication.log.log_lines import NDJSON
from annals.projections.replication.remote import bounded_responses
from annals.projections.replication.remote.content_decoding import ACCEPT_ENCODING, STEP_BYTES
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from tests.support.memory import peak_bytes
from tests.support.registries.other_registry import Answer, other_registry

_PROBLEM = json.dumps({"type": "t", "title": "There is nothing."}).encode()
_TEXT = b"".join(b"%d\n" % number for number in range(200_000))


def client(url: str) -> closing[RemoteClient]:
    """A client for a local server."""
    return closing(RemoteClient(url, DestinationGuard("127.0.0.1")))


def encoded(body: bytes, coding: str, status: int = 200) -> Answer:
    """An answer with a content coding."""
    return Answer(body, status, {"content-type": NDJSON, "content-encoding": coding})


#: Answers that are read, and their bodies.
_READABLE: dict[str, tuple[Answer, bytes]] = {
    "gzip": (encoded(gzip.compress(_TEXT), "gzip"), _TEXT),
    "x-gzip": (encoded(gzip.compress(_TEXT), "X-GZIP"), _TEXT),
    "identity": (encoded(_TEXT, "identity"), _TEXT),
    "both": (encoded(gzip.compress(_TEXT), "identity, gzip"), _TEXT),
    "members": (encoded(gzip.compress(_TEXT) + gzip.compress(b"") + gzip.compress(b"end"), "gzip"), _TEXT + b"end"),
    "one step": (encoded(gzip.compress(b"\n" * STEP_BYTES), "gzip"), b"\n" * STEP_BYTES),
    "a step more": (encoded(gzip.compress(b"\n" * 2 * STEP_BYTES), "gzip"), b"\n" * 2 * STEP_BYTES),
    "nothing": (encoded(b"", "gzip"), b""),
    "zstd": (encoded(zstandard.compress(_TEXT), "zstd"), _TEXT),
    "frames": (encoded(zstandard.compress(_TEXT) + zstandard.compress(b"end"), "zstd"), _TEXT + b"end"),
    "nothing in zstd": (encoded(b"", "zstd"), b""),
    "error": (encoded(gzip.compress(_PROBLEM), "gzip", 404), _PROBLEM),
}


@pytest.mark.parametrize("case", _READABLE)
def test_codings_that_are_read(case: str) -> None:
    """LEG-1108: a coding gives the same as none, as a whole, line by line, and in the error of a problem document."""
    answer, body = _READABLE[case]
    with other_registry({"GET /x": answer}) as other, client(other.url) as remote:
        if answer.status >= 400:
            with pytest.raises(RemoteError, match=r": There is nothing\.$"):
                remote.request("GET", "/x")
            return
        response = remote.request("GET", "/x")
        assert response.request.headers["accept-encoding"] == ACCEPT_ENCODING
        assert response.content == body
        with remote.stream("/x", NDJSON, {}) as lines:
            found = [line for line in lines.lines if line is not None]
        assert b"\n".join([*found, b""] if body.endswith(b"\n") else found) == body


_MANY = 1 << 27
_BOMB = gzip.compress(bytes(_MANY))
_ZSTD_BOMB = zstandard.ZstdCompressor().compress(bytes(_MANY))
#: A frame for which a decoder needs 32 MiB.
_LARGE_WINDOW = (
    zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=25, write_content_size=False)
    )
    .compressobj()
    .compress(bytes(1 << 23))
)
#: Answers that are refused, and the error.
_REFUSED: dict[str, tuple[Answer, str]] = {
    "gzip": (encoded(_BOMB, "gzip"), "has more than 9999 bytes"),
    "gzip twice": (encoded(gzip.compress(_BOMB), "gzip, gzip"), "its answer has 2 content codings, but only one"),
    "zstd": (encoded(_ZSTD_BOMB, "zstd"), "has more than 9999 bytes"),
    "zstd window": (encoded(_LARGE_WINDOW, "zstd"), "its answer is not valid zstd: .*memory"),
    "no zstd": (encoded(_TEXT, "zstd"), "its answer is not valid zstd"),
    "zstd cut off": (encoded(zstandard.compress(b"line\n")[:-3], "zstd"), "ends before the end of its zstd data"),
    "deflate": (encoded(zlib.compress(_TEXT), "deflate"), "a content coding that was not asked for"),
    "no gzip": (encoded(_TEXT, "gzip"), "its answer is not valid gzip"),
    "cut off": (encoded(gzip.compress(b"line\n")[:-6], "gzip"), "ends before the end of its gzip data"),
    "error in gzip": (encoded(_BOMB, "gzip", 500), "answers 500$"),
    "error in gzip twice": (encoded(gzip.compress(_BOMB), "gzip, gzip", 500), "answers 500$"),
    "error in zstd": (encoded(_ZSTD_BOMB, "zstd", 500), "answers 500$"),
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("case", _REFUSED)
def test_codings_that_are_refused(case: str, streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """LEG-1108: neither an answer nor a line of it takes more memory than its limit and some steps of decoding."""
    for name in ("MAX_RESPONSE_BYTES", "MAX_LINE_BYTES", "MAX_ERROR_BYTES"):
        monkeypatch.setattr(bounded_responses, name, 9999)
    answer, said = _REFUSED[case]
    with other_registry({"GET /x": answer}) as other, client(other.url) as remote:

        def read_refused() -> None:
            with pytest.raises(RemoteError, match=said):
                read_all(remote, streams)

        assert peak_bytes(read_refused) < 20 * STEP_BYTES


def read_all(remote: RemoteClient, streams: bool) -> None:
    """Reads a whole answer, or its lines."""
    if not streams:
        remote.request("GET", "/x")
        return
    with remote.stream("/x", NDJSON, {}) as answer:
        for _ in answer.lines:
            pass


@contextmanager
def sending_parts(parts: list[bytes]) -> Iterator[tuple[str, Callable[[], None]]]:
    """A server that sends each part of an answer in gzip after a call of the yielded function; and its URL."""
    may_send, compressor = Event(), zlib.compressobj(wbits=31)

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n" % NDJSON.encode())
            connection.sendall(b"content-encoding: gzip\r\nconnection: close\r\n\r\n")
            for part in parts:
                connection.sendall(compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH))
                may_send.wait(60)
                may_send.clear()
            connection.sendall(compressor.flush())

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", may_send.set


def test_lines_in_gzip_arrive_as_they_are_sent() -> None:
    """LEG-910: each line of a stream is read before the server sends the next one."""
    sent = [b"%d" % number * size for number, size in enumerate((1, 70_000, STEP_BYTES, 3))]
    with (
        sending_parts([line + b"\n" for line in sent]) as (url, send_next),
        client(url) as remote,
        remote.stream("/x", NDJSON, {}) as answer,
    ):
        for line in sent:
            assert next(found for found in answer.lines if found is not None) == line
            assert next(answer.lines) is None
            send_next()
        assert [found for found in answer.lines if found is not None] == []
