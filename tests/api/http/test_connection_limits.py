"""Limits on the size and the time of a request that a connection has not completed, against a served registry."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from itertools import repeat
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.polling import until
from tests.support.serving import Served, serving

KIB = 1 << 10
GROUP = "/schemagroups/g"
#: Limits in time that tests can wait for.
SHORT = {
    "ANNALS_HEADER_SECONDS": "1",
    "ANNALS_BODY_SECONDS": "1",
    "ANNALS_BODY_RATE": "1000",
    "ANNALS_KEEPALIVE_SECONDS": "1",
}


class Reply(NamedTuple):
    """A response: its status, its error type, and the whole body. Status 0 if the connection ended without one."""

    status: int
    problem: str
    body: Any


@contextmanager
def connected(served: Served) -> Iterator[socket.socket]:
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        yield connection


def read_reply(connection: socket.socket) -> Reply:
    """Reads the next response, and nothing after it."""
    answer = HTTPResponse(connection, method="GET")
    try:
        answer.begin()
    except (ConnectionError, ValueError, OSError):
        return Reply(0, "", None)
    text = answer.read()
    body = json.loads(text) if text else None
    kind = str(body.get("type", "")) if isinstance(body, dict) else ""
    return Reply(answer.status, kind.rpartition("#")[2], body)


def ended(connection: socket.socket) -> bool:
    """Whether the server has ended the connection, with nothing more to read."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def exchange(served: Served, *parts: bytes) -> Reply:
    """Sends bytes; the response, after which the server has to end the connection."""
    with connected(served) as connection:
        for part in parts:
            connection.sendall(part)
        answer = read_reply(connection)
        assert ended(connection)
    return answer


def memory(served: Served) -> int:
    """The resident memory of the server, in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{served.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * KIB


def get(path: str = "/", *headers: bytes) -> bytes:
    return b"".join((b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n" % path.encode(), *headers, b"\r\n"))


def header(size: int) -> bytes:
    """A header with this many bytes before the line end."""
    return b"X-Y: " + b"z" * (size - 5) + b"\r\n"


def put(*lines: bytes) -> bytes:
    return b"\r\n".join((b"PUT %s HTTP/1.1" % GROUP.encode(), b"Host: 127.0.0.1", *lines, b"", b""))


CHUNKED = put(b"Transfer-Encoding: chunked")
LINE = "GET  HTTP/1.1"
ROOT_URL = "http://127.0.0.1/"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("bounded")
    with serving(f"sqlite:///{place / 'annals.db'}", place) as found:
        yield found


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A registry with short time limits."""
    place = tmp_path_factory.mktemp("hasty")
    with serving(f"sqlite:///{place / 'annals.db'}", place, **SHORT) as found:
        yield found


#: Rule: bytes, status and problem of the response. ACC-114: a request line beyond 16 KiB -> 414; one header beyond 16
#: KiB, more than 512, or more than 128 KiB in all -> 431.
ROWS: dict[str, tuple[bytes, int, str]] = {
    "ACC-114: a request line of 16 KiB": (get("/" + "a" * (16 * KIB - len(LINE) - 1)), 404, "not_found"),
    "ACC-114: one byte more": (get("/" + "a" * (16 * KIB - len(LINE))), 414, "uri_too_long"),
    "ACC-114: a whole URL of 16 KiB": (get(ROOT_URL + "a" * (16 * KIB - len(LINE + ROOT_URL))), 404, "not_found"),
    "ACC-114: one byte more in a URL": (
        get(ROOT_URL + "a" * (16 * KIB + 1 - len(LINE + ROOT_URL))),
        414,
        "uri_too_long",
    ),
    "ACC-114: a header of 16 KiB": (get("/nope", header(16 * KIB)), 404, "not_found"),
    "ACC-114: one byte more in a header": (get("/nope", header(16 * KIB + 1)), 431, "headers_too_large"),
    "ACC-114: a long header that is not the last": (get("/", header(17 * KIB), b"A: b\r\n"), 431, "headers_too_large"),
    "ACC-114: 512 headers": (get("/nope", *repeat(b"A: b\r\n", 511)), 404, "not_found"),
    "ACC-114: one more header": (get("/nope", *repeat(b"A: b\r\n", 512)), 431, "headers_too_large"),
    "ACC-114: large headers, one too many": (get("/nope", *repeat(header(200), 512)), 431, "headers_too_large"),
    "ACC-114: 128 KiB of headers": (
        get("/nope", *repeat(header(16 * KIB), 7), header(16 * KIB - 50)),
        404,
        "not_found",
    ),
    "ACC-114: more than 128 KiB": (get("/nope", *repeat(header(16 * KIB), 8)), 431, "headers_too_large"),
    "ACC-114: empty lines first": (b"\r\n" * 100 + get("/nope"), 404, "not_found"),
    "ACC-114: too many of them": (b"\r\n" * 100 * KIB, 431, "headers_too_large"),
    "ACC-114: chunk extensions": (CHUNKED + b"2;" + b"e" * 17 * KIB + b"\r\n{}\r\n0\r\n\r\n", 400, "bad_request"),
    "ACC-114: many of them": (CHUNKED + (b"1;" + b"e" * 98 + b"\r\n \r\n") * 300 + b"0\r\n\r\n", 400, "bad_request"),
    "ACC-114: leading zeros of a chunk": (CHUNKED + b"0" * 17 * KIB + b"2\r\n{}\r\n0\r\n\r\n", 400, "bad_request"),
    "ACC-114: trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 4 * KIB + b"\r\n", 400, "bad_request"),
}


@pytest.mark.parametrize("size", [1 << 20, 1000], ids=["at once", "in parts"])
@pytest.mark.parametrize("rule", ROWS)
def test_what_a_request_may_have(served: Served, rule: str, size: int) -> None:
    sent, status, problem = ROWS[rule]
    with connected(served) as connection:
        for start in range(0, len(sent), size):
            connection.sendall(sent[start : start + size])
        answer = read_reply(connection)
        assert (answer.status, answer.problem) == (status, problem)
        assert status == 404 or ended(connection)


@pytest.mark.parametrize(("target", "host"), [(b"", b"h.example:1"), (b"http://h.example:1", b"b.example")])
def test_too_large_headers_get_a_hint(served: Served, target: bytes, host: bytes) -> None:
    # ACC-114: $details takes attributes in the body
    line = b"PUT %b/schemagroups/g/schemas/s HTTP/1.1\r\nHost: %b\r\nAccept: */*\r\n" % (target, host)
    sent = line + header(17 * KIB)
    title = (
        'For "/schemagroups/g/schemas/s", a header has more than 16384 bytes. Attributes that are too large for '
        "headers go into the body: send them as JSON to the path with $details."
    )
    assert exchange(served, sent).body == {
        "type": "http://h.example:1/-/docs#headers_too_large",
        "title": title,
        "subject": "/schemagroups/g/schemas/s",
        "args": {"error_detail": "a header has more than 16384 bytes"},
    }


@pytest.mark.parametrize(
    ("path", "status"), [("/-/log", 431), ("/subscriptions", 431), ("/compat/schemaregistry/v0.2/x", 431), ("/", None)]
)
def test_each_surface_has_its_form(served: Served, path: str, status: int | None) -> None:
    with connected(served) as connection:
        connection.sendall(get(path, header(17 * KIB)))
        answer = HTTPResponse(connection)
        answer.begin()
        kind = "application/problem+json" if status else "application/json; charset=utf-8"
        assert (answer.status, answer.getheader("content-type")) == (431, kind)
        assert json.loads(answer.read()).get("status") == status


def endless(start: bytes, more: bytes) -> Callable[[], Iterator[bytes]]:
    """Bytes that never complete a request."""

    def parts() -> Iterator[bytes]:
        yield start
        yield from repeat(more)

    return parts


ENDLESS = {
    "a request line": endless(b"GET /", b"a" * 64 * KIB),
    "one header": endless(b"GET / HTTP/1.1\r\nX: ", b"a" * 64 * KIB),
    "headers": endless(b"GET / HTTP/1.1\r\n", b"A: b\r\n" * 10 * KIB),
    "folded lines": endless(b"GET / HTTP/1.1\r\nX: y\r\n", b" z\r\n" * 16 * KIB),
    "empty lines": endless(b"", b"\r\n" * 32 * KIB),
    "an extension of a chunk": endless(CHUNKED + b"2;", b"e" * 64 * KIB),
    "chunks with extensions": endless(CHUNKED, b"1;" + b"e" * KIB + b"\r\nx\r\n"),
    "trailers": endless(CHUNKED + b"2\r\n{}\r\n0\r\n", b"A: b\r\n" * 10 * KIB),
    "one trailer": endless(CHUNKED + b"2\r\n{}\r\n0\r\nA: ", b"b" * 64 * KIB),
    "no HTTP": endless(b"hello\r\n\r\n", b"a" * 64 * KIB),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_costs_nothing(served: Served, name: str) -> None:
    # ACC-114: the parser does not store it. The server ends the connection although the client goes on sending
    before, sent = memory(served), 0
    with connected(served) as connection, pytest.raises(ConnectionError):
        deadline = time.monotonic() + 60
        for part in ENDLESS[name]():
            connection.sendall(part)
            sent += len(part)
            assert time.monotonic() < deadline, f"{sent} bytes were taken"
    assert memory(served) - before < 8 << 20
    assert httpx.get(served.url).status_code == 200


def test_requests_sent_ahead_wait_as_bytes(served: Served) -> None:
    # the server does not parse requests ahead of pending responses, and stops reading from the client
    before, deadline = memory(served), time.monotonic() + 3
    with connected(served) as connection:
        connection.settimeout(0.2)
        answers = Thread(target=read_all, args=(connection,))
        answers.start()
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                connection.sendall(b"GET /nope HTTP/1.1\r\nHost:\r\n\r\n" * 10_000)
        grown = memory(served) - before
        connection.shutdown(socket.SHUT_RDWR)
        answers.join()
    assert grown < 16 << 20
    assert httpx.get(served.url).status_code == 200


def read_all(connection: socket.socket) -> None:
    """Reads until the connection ends."""
    while True:
        try:
            if not connection.recv(1 << 16):
                return
        except TimeoutError:
            continue
        except ConnectionError:
            return


def test_requests_sent_ahead_are_answered_in_order(served: Served) -> None:
    # also with bodies between them, in chunks or not, and wherever the bytes are split
    text = b'{"name": "\\r\\n\\r\\n"}\r\n\r\n'
    sent = b"".join(
        (
            get("/nope/1"),
            put(b"Content-Length: %d" % len(text)) + text,
            CHUNKED + b"%x\r\n%s\r\n0\r\nA: b\r\n\r\n" % (len(text), text),
            *(get(f"/nope/{number}") for number in range(200)),
            put(b"Expect: 100-continue", b"Content-Length: %d" % len(text)) + text,
            get("/-/nope", header(17 * KIB)),
        )
    )
    for size in (1, 3, 1000, len(sent)):
        with connected(served) as connection:
            for start in range(0, len(sent), size):
                connection.sendall(sent[start : start + size])
            answers = connection.makefile("rb").read()
        statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answers)]
        assert statuses[0] == 404
        assert set(statuses[1:3]) <= {200, 201}
        assert [status for status in statuses[3:] if status != 100] == [*repeat(404, 200), 200, 431]


def test_trailers_are_no_headers(served: Served) -> None:
    # RFC 9110, "Limitations on Use of Trailers": trailers must not change the meaning of a request
    with connected(served) as connection:
        path = b"PUT /schemagroups/g/schemas/trailed HTTP/1.1\r\nHost: localhost\r\nxRegistry-format: Text\r\n"
        connection.sendall(path + b"Transfer-Encoding: chunked\r\n\r\n0\r\nxRegistry-name: trailed\r\n\r\n")
        assert read_reply(connection).status == 201
    shown = httpx.get(f"{served.url}/schemagroups/g/schemas/trailed$details").json()
    assert "name" not in shown


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: %s\r\nHTTP2-Settings: AAEAAA\r\n"
UPGRADED_CHUNKS = b"2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize(
    ("framing", "body"), [(b"Content-Length: 2", b"{}"), (b"Transfer-Encoding: chunked", UPGRADED_CHUNKS)]
)
@pytest.mark.parametrize("is_split", [True, False], ids=["later", "at once"])
def test_an_upgrade_that_is_not_offered(
    served: Served, protocol: bytes, framing: bytes, body: bytes, is_split: bool
) -> None:
    # RFC 9110, "Upgrade": a server may ignore it; the body then belongs to the request, and other requests may follow
    head = b"PUT /schemagroups/upgraded HTTP/1.1\r\nHost: localhost\r\n" + UPGRADE % protocol + framing + b"\r\n\r\n"
    with connected(served) as connection:
        for _ in range(2):
            connection.sendall(head if is_split else head + body)
            if is_split:
                time.sleep(0.05)
                connection.sendall(body)
            assert read_reply(connection).status in (200, 201)
        connection.sendall(get("/nope", UPGRADE % protocol))
        assert read_reply(connection).status == 404
        connection.sendall(get("/"))
        assert read_reply(connection).status == 200


def test_a_connect_is_followed_by_another_protocol(served: Served) -> None:
    # RFC 9110, "CONNECT": the bytes after it are not for this server
    for target, status in {b"localhost:80": 400, b"/": 405}.items():
        with connected(served) as connection:
            connection.sendall(b"CONNECT %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target + get("/"))
            assert read_reply(connection).status == status
            assert ended(connection)


LOCAL = b"Host: localhost\r\n"
OTHER = b"Host: b.example\r\n"


@pytest.mark.parametrize(
    ("target", "hosts", "status", "shown"),
    [
        (b"http://localhost:1/", OTHER, 200, "http://localhost:1/"),
        (b"http://localhost:1", OTHER, 200, "http://localhost:1/"),
        (b"http://localhost?inline=model", LOCAL, 200, "http://localhost/"),
        (b"http://user:password@[::1]:8/?inline=model", OTHER, 200, "http://[::1]:8/"),
        (b"http://a.example/", LOCAL, 421, "misdirected_request"),
        (b"http://localhost/", b"", 400, "bad_request"),
        (b"http://localhost/", LOCAL + LOCAL, 400, "bad_request"),
        (b"http:///", LOCAL, 400, "bad_request"),
        (b"http://localhost:x/", LOCAL, 400, "bad_request"),
        (b"localhost", LOCAL, 400, "bad_request"),
        (b"*", LOCAL, 200, "http://localhost/"),
    ],
)
def test_the_authority_of_a_target(served: Served, target: bytes, hosts: bytes, status: int, shown: str) -> None:
    # RFC 9112, "Request Target": it counts instead of Host, for ACC-87 and for URLs (HTTP-1); the path may be empty
    with connected(served) as connection:
        connection.sendall(b"GET %b HTTP/1.1\r\n%b\r\n" % (target, hosts))
        answer = read_reply(connection)
    assert (answer.status, answer.body.get("self", answer.problem)) == (status, shown)
    assert ("model" in answer.body) == target.endswith(b"?inline=model")


# Time


def test_a_head_that_drips(hasty: Served) -> None:
    with connected(hasty) as connection:
        answer = drip(connection, get("/nope/" + "x" * 200), 0.05)
    assert (answer.status, answer.problem) == (408, "request_timeout")


def test_a_head_that_drips_on_a_connection_in_use(hasty: Served) -> None:
    with connected(hasty) as connection:
        connection.sendall(get("/nope"))
        assert read_reply(connection).status == 404
        answer = drip(connection, get("/nope/" + "x" * 200), 0.05)
    assert (answer.status, answer.problem) == (408, "request_timeout")


@pytest.mark.parametrize(
    "sent",
    [put(b"Content-Length: 1000") + b" " * 1000, CHUNKED + b"1\r\n \r\n" * 500],
    ids=["with a length", "in chunks"],
)
def test_a_body_that_drips(hasty: Served, sent: bytes) -> None:
    at = sent.index(b"\r\n\r\n") + 4
    with connected(hasty) as connection:
        connection.sendall(sent[:at])
        answer = drip(connection, sent[at:], 0.05)
    assert (answer.status, answer.problem) == (408, "request_timeout")
    assert httpx.get(hasty.url + GROUP).status_code == 404


def test_a_slow_body_that_is_fast_enough(hasty: Served) -> None:
    # each thousand bytes extend the limit by one second; the test sends far more in a second, as it may be slow itself
    text = b'{"name": "slow"}' + b" " * 80_000
    with connected(hasty) as connection:
        sent = put(b"Content-Length: %d" % len(text)).replace(b"/g ", b"/slow ") + text
        for start in range(0, len(sent), 10_000):
            connection.sendall(sent[start : start + 10_000])
            time.sleep(0.4)
        assert read_reply(connection).status == 201


def test_a_connection_without_a_request(hasty: Served) -> None:
    with connected(hasty) as unused, connected(hasty) as used:
        begun = time.monotonic()
        used.sendall(get("/nope"))
        assert read_reply(used).status == 404
        assert ended(used)
        assert ended(unused)
        assert time.monotonic() - begun < 15, "the usual limits are longer"


def test_time_that_the_server_takes_does_not_count(hasty: Served) -> None:
    # a client that follows the log may send nothing for any length of time
    with httpx.stream("GET", f"{hasty.url}/-/events", headers={"accept": "text/event-stream"}) as following:
        assert following.status_code == 200
        pieces = following.iter_raw()
        next(pieces)
        time.sleep(3)
        assert httpx.put(f"{hasty.url}/schemagroups/told", json={}).status_code == 201
        assert any(b"/schemagroups/told" in piece for piece in pieces)


def test_so_many_connections(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'annals.db'}", tmp_path, ANNALS_MAX_CONNECTIONS="3") as served:
        with connected(served) as first, connected(served) as second, connected(served) as third:
            for connection in (first, second, third):
                connection.sendall(get("/nope"))
                assert read_reply(connection).status == 404
            with connected(served) as one_more:
                answer = read_reply(one_more)
                assert (answer.status, answer.problem) == (503, "too_many_connections")
                assert ended(one_more)
            third.sendall(get("/nope"))
            assert read_reply(third).status == 404
        until(lambda: httpx.get(served.url).status_code == 200)


def drip(connection: socket.socket, sent: bytes, pause: float) -> Reply:
    """Sends bytes one by one; the response."""
    connection.setblocking(False)
    for number in range(len(sent)):
        connection.send(sent[number : number + 1])
        time.sleep(pause)
        try:
            if connection.recv(1, socket.MSG_PEEK):
                break
        except BlockingIOError:
            continue
    connection.settimeout(60)
    return read_reply(connection)


def test_a_small_answer_arrives_in_one_piece(served: Served) -> None:
    """Head and body are one packet: a client that reads once has both."""
    with connected(served) as connection:
        for _ in range(50):
            connection.sendall(b"GET /-/livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            assert length and len(body) == int(length[1]) > 0


def test_an_answer_is_sent_before_the_connection_is_closed(served: Served) -> None:
    with connected(served) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = read_reply(connection)
        assert answer.status == 200 and answer.body["specversion"] == "1.0-rc4"
        assert ended(connection)
