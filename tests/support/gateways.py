"""A gateway in front of a schema registry: it forwards requests, or answers some of them itself.

It makes a registry look like another product or release, or like an overloaded one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import httpx

#: The status of a response without a body.
_NO_CONTENT: Final = 204


class GatewayRequest(NamedTuple):
    """A request. path: decoded, without the query."""

    method: str
    path: str
    query: dict[str, str]


class GatewayResponse(NamedTuple):
    """A response. body: sent as JSON."""

    status: int
    body: Any
    headers: dict[str, str] = {}


#: Returns the response to a request, or None to forward the request.
Answer = Callable[[GatewayRequest], GatewayResponse | None]
#: Returns the query parameters of a request that are not forwarded.
Ignored = Callable[[GatewayRequest], Collection[str]]
#: Changes the body of the registry's response to a request.
Change = Callable[[GatewayRequest, Any], Any]


class Gateway(ThreadingHTTPServer):
    """url: its own address. requests: all requests, in order."""

    daemon_threads = True

    def __init__(self, registry: str, answer: Answer, ignored: Ignored, change: Change) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = httpx.Client(base_url=registry, timeout=60)
        self.answer, self.ignored, self.change = answer, ignored, change
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: list[GatewayRequest] = []
        self.lock = Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: programs that are stopped do not wait for answers, and later tests read what is printed."""


@contextmanager
def gateway(
    registry: str,
    answer: Answer = lambda request: None,
    ignored: Ignored = lambda request: (),
    change: Change = lambda request, body: body,
) -> Iterator[Gateway]:
    """A running gateway to a registry. See `Answer`, `Ignored` and `Change` for the parameters."""
    with Gateway(registry, answer, ignored, change) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            server.client.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Gateway

    def _handle(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        request = GatewayRequest(self.command, unquote(parts.path), dict(parse_qsl(parts.query)))
        with self.server.lock:
            self.server.requests.append(request)
            response = self.server.answer(request)
        if response is None:
            response = self._forwarded(request, content)
        body = json.dumps(response.body).encode() if response.status != _NO_CONTENT else b""
        self.send_response(response.status)
        for name, value in {**response.headers, "content-type": "application/json"}.items():
            self.send_header(name, value)
        if response.status != _NO_CONTENT:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _forwarded(self, request: GatewayRequest, content: bytes) -> GatewayResponse:
        forwarded = ("accept", "content-type", "confluent-accept-unknown-properties")
        headers = {name: value for name in forwarded if (value := self.headers.get(name)) is not None}
        ignored = self.server.ignored(request)
        query = urlencode({name: value for name, value in request.query.items() if name not in ignored})
        path = f"{urlsplit(self.path).path}?{query}"
        answer = self.server.client.request(self.command, path, content=content, headers=headers)
        return GatewayResponse(
            answer.status_code, self.server.change(request, answer.json() if answer.content else None)
        )

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - names of the standard library

    def log_message(self, format: str, *args: Any) -> None:
        """Suppresses the log."""
