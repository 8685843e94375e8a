"""The addresses that links may connect to, and how much of a response they read and repeat in their status."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.replication.log.log_lines import NDJSON
from annals.projections.replication.remote.remote_client import MAX_DETAIL_LENGTH, RemoteClient, RemoteError
from tests.support.polling import until
from tests.support.registries.restarted import Registry

_INNER = "root:x:0:0 the banner of an inner server"
_OURS = {"type": "http://a/-/docs#not_found", "title": "There is nothing.", "detail": "It  is\nnot here."}
#: The body of an error response, and what the RemoteError repeats of it after the status.
_ANSWERS = (
    (_INNER.encode(), ""),
    (json.dumps({"error": _INNER}).encode(), ""),
    (json.dumps({"title": _INNER}).encode(), ""),
    (json.dumps([_INNER]).encode(), ""),
    (b"[" * 100_000, ""),
    (json.dumps(_OURS).encode(), ": There is nothing. It is not here."),
    (json.dumps({**_OURS, "detail": {"inner": _INNER}}).encode(), ": There is nothing."),
    (json.dumps({**_OURS, "title": "half of a pair: \ud800"}).encode(), ""),
    (json.dumps({**_OURS, "title": "x" * 9999}).encode(), f": {'x' * MAX_DETAIL_LENGTH}"),
)


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Runs a server that sends the same response to every GET; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/x-ndjson")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(("body", "said"), _ANSWERS)
def test_an_error_repeats_problem_documents_only(body: bytes, said: str) -> None:
    """SUB-904: an error repeats title and detail of a problem document, and nothing of any other body."""
    with answering(500, body) as url, closing(RemoteClient(url, DestinationGuard("127.0.0.1"))) as remote:
        with pytest.raises(RemoteError) as requested:
            remote.request("GET", "/-/log/head")
        with pytest.raises(RemoteError) as streamed, remote.stream("/-/log", NDJSON, {}):
            pass
    assert str(requested.value) == f"GET /-/log/head answers 500{said}"
    assert str(streamed.value) == f"GET /-/log answers 500{said}"


_TOKEN = {"type": "bearer", "token": "S3cr+t/token=="}
_PASSWORD = {"type": "basic", "username": "ulla", "password": "pass  word:1"}
#: The credential of a link, what the other registry sends back of it, and what the RemoteError shows.
_ECHOES = (
    (_TOKEN, "Bearer S3cr+t/token== is not known", "Bearer *** is not known"),
    (_TOKEN, "bearer s3cr+t/TOKEN==, S3cr%2Bt%2Ftoken%3D%3D", "bearer ***, ***"),
    (_TOKEN, "x" * 495 + "S3cr+t/token==", "x" * 495 + "***"),
    (_PASSWORD, "pass  word:1 of ulla", "*** of ulla"),
    (_PASSWORD, f"Basic {b64encode(b'ulla:pass  word:1').decode()}", "Basic ***"),
    (_PASSWORD, "a pass and a word", "a pass and a word"),
    (None, "no secret", "no secret"),
)


@pytest.mark.parametrize(("credential", "sent", "said"), _ECHOES)
def test_an_error_repeats_no_secret(credential: dict[str, str] | None, sent: str, said: str) -> None:
    """SUB-303, LEG-901: errors, which are shown in the status and in the log, hide the secrets of the link."""
    problems = ({**_OURS, "title": sent, "detail": ""}, {**_OURS, "title": "", "detail": sent})
    for problem in problems:
        with (
            answering(401, json.dumps(problem).encode()) as url,
            closing(RemoteClient(url, DestinationGuard("127.0.0.1"), credential)) as remote,
        ):
            with pytest.raises(RemoteError) as requested:
                remote.request("GET", "/x")
            with pytest.raises(RemoteError) as streamed, remote.stream("/x", NDJSON, {}):
                pass
        assert str(requested.value) == str(streamed.value) == f"GET /x answers 401: {said}"


def test_an_error_about_a_header_repeats_no_secret() -> None:
    """SUB-303, LEG-901: neither does the error for a content type, nor that for an answer that is not HTTP."""
    token = "S3cr+t/token=="
    as_type = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: 0\r\n\r\n" % token.encode()
    for content in (as_type, f"Bearer {token}\r\n\r\n".encode()):
        with (
            sending(content) as url,
            closing(RemoteClient(url, DestinationGuard("127.0.0.1"), _TOKEN)) as remote,
            pytest.raises(RemoteError) as streamed,
            remote.stream("/x", NDJSON, {}),
        ):
            pass
        assert token not in str(streamed.value) and "***" in str(streamed.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::1]"])
def test_private_addresses_are_refused(host: str) -> None:
    """LEG-1108, SUB-901: loopback addresses in any notation are refused unless the operator permits them."""
    refused = pytest.raises(RemoteError, match="unless ANNALS_SINKS_ALLOW permits them")
    with (
        answering(200, b"{}") as url,
        closing(RemoteClient(url.replace("127.0.0.1", host), DestinationGuard())) as remote,
        refused,
    ):
        remote.request("GET", "/")


def test_a_name_with_several_addresses_is_tried_at_each() -> None:
    """SUB-901: all addresses of a name are checked; if the first one does not answer, the next one is tried."""

    async def look_up(host: str, port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    guard = DestinationGuard("there", look_up=look_up)
    with answering(200, b"{}") as url, closing(RemoteClient(url.replace("127.0.0.1", "there"), guard)) as remote:
        assert remote.request("GET", "/").json() == {}


@pytest.mark.parametrize("credential", [{"type": "bearer", "token": "t"}, {"type": "basic", "username": "u"}])
def test_credentials_without_tls_stay_on_the_machine(credential: dict[str, str]) -> None:
    """SUB-306, LEG-901: also if a name of another machine is stored already; requests without a credential go there."""

    async def look_up(host: str, port: int) -> list[str]:
        return ["192.0.2.1"] if host == "there" else ["127.0.0.1"]

    guard = DestinationGuard("there,here", look_up=look_up)
    with answering(200, b"{}") as url:
        there, here = (url.replace("127.0.0.1", name) for name in ("there", "here"))
        refused = pytest.raises(RemoteError, match="credentials are sent over TLS only")
        with closing(RemoteClient(there, guard, credential)) as remote, refused:
            remote.request("GET", "/")
        with closing(RemoteClient(here, guard, credential)) as remote:
            assert remote.request("GET", "/").json() == {}


@contextmanager
def sending(content: bytes) -> Iterator[str]:
    """Runs a server that sends these bytes on every connection and keeps it open; yields its URL."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(content)
            connection.recv(1)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ncontent-length: 99999\r\n\r\n"
_ERROR = _HEAD.replace(b"200 OK", b"500 Oh")
_GZIP = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b" " * 99999)
#: What a server sends, whether the client streams lines, and the expected error.
_UNBOUNDED = (
    (_HEAD + b" " * 50000, False, "its answer has more than 9999 bytes"),
    (_GZIP, False, "its answer has more than 9999 bytes"),
    (_ERROR + b" " * 50000, False, "answers 500$"),
    (_ERROR + b" " * 50000, True, "answers 500$"),
    (_HEAD + b"x\n" + b" " * 50000, True, "a line of its answer has more than 9999 bytes"),
)


@pytest.mark.parametrize(("content", "feed", "said"), _UNBOUNDED)
def test_answers_are_bounded_in_size(content: bytes, feed: bool, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LEG-1108: a response cannot fill the memory of this registry. Another test covers its duration."""
    for name, bound in {"MAX_RESPONSE_BYTES": 9999, "MAX_LINE_BYTES": 9999, "MAX_ERROR_BYTES": 999}.items():
        monkeypatch.setattr(f"annals.projections.replication.remote.bounded_responses.{name}", bound)
    refused = pytest.raises(RemoteError, match=said)
    with sending(content) as url, closing(RemoteClient(url, DestinationGuard("127.0.0.1"))) as remote, refused:
        if not feed:
            remote.request("GET", "/export")
        with remote.stream("/-/log", NDJSON, {}) as answer:
            list(answer.lines)


def test_lines_of_a_stream() -> None:
    """LEG-910: a stream yields whole lines, wherever the chunks of a response end, and None after each chunk."""
    text = "".join(f"{'x' * (number * 7919 % 70000)}{number}\n" for number in range(60)) + "\nlast"
    with (
        answering(200, text.encode()) as url,
        closing(RemoteClient(url, DestinationGuard("127.0.0.1"))) as remote,
        remote.stream("/-/log", NDJSON, {}) as answer,
    ):
        lines = list(answer.lines)
    assert None in lines
    assert [line.decode() for line in lines if line is not None] == text.split("\n")


_LINKS: tuple[dict[str, Any], ...] = (
    {"dialect": "log", "mode": "pull"},
    {"dialect": "log", "mode": "events"},
    {"dialect": "log", "mode": "push"},
    {"dialect": "xregistry", "mode": "pull"},
    {"dialect": "xregistry", "mode": "push"},
    {"dialect": "schemaregistry", "mode": "pull"},
    {"dialect": "schemaregistry", "mode": "events"},
    {"dialect": "schemaregistry", "mode": "push"},
    {"dialect": "kafka", "mode": "pull"},
)


@pytest.mark.parametrize("members", _LINKS, ids=lambda members: "-".join(members.values()))
def test_no_dialect_goes_where_the_operator_permits_nothing(alone: Registry, members: dict[str, Any]) -> None:
    """LEG-1108: the destination guard of sinks applies to links of every dialect and mode, and to checks of links."""
    id = "-".join(members.values())
    with answering(500, _INNER.encode()) as inner:
        url = f"{inner.replace('http', 'kafka')}/topic" if members["dialect"] == "kafka" else inner
        credential = {} if members["dialect"] == "kafka" else {"credential": {"token": "t"}}
        alone.done("PUT", f"/-/links/{id}", {"url": url, **members, **credential})
        until(lambda: "error" in alone.status(id))
        error = alone.status(id)["error"]
        assert "unless ANNALS_SINKS_ALLOW permits them" in error and _INNER not in error
        if (members["dialect"], members["mode"]) == ("log", "pull"):
            refused = alone.request("POST", f"/-/links/{id}/actions/check")
            assert refused.status_code == 502 and "unless ANNALS_SINKS_ALLOW permits them" in refused.text
        alone.done("DELETE", f"/-/links/{id}")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry whose operator permits no addresses."""
    with closing(Registry(tmp_path_factory.mktemp("alone"), ANNALS_SINKS_ALLOW="")) as registry:
        registry.start()
        registry.fill(1, 1)  # a pushing link connects only if there is something to push
        yield registry
