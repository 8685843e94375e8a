"""A proxy in front of a registry that, while a fault lasts, answers requests by itself or changes answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final, NamedTuple

import httpx

_HTML: Final = {"content-type": "text/html; charset=utf-8"}
#: Headers that belong to one connection or to the encoding of one body.
_OWN_HEADERS: Final = frozenset(
    (
        "host",
        "connection",
        "accept-encoding",
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "date",
        "server",
    )
)


class Answer(NamedTuple):
    """An answer of a proxy."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


#: The answer to a request, by its method and path; None to forward the request.
Fault = Callable[[str, str], Answer | None]
#: Makes another answer of a registry's answer to a request, by the path and the accepted media type.
Change = Callable[[str, str, Answer], Answer]

NOT_FOUND_PAGE: Final = Answer(404, _HTML, b"<p>default backend")
NOT_FOUND_PROBLEM: Final = Answer(
    404, {"content-type": "application/json"}, json.dumps({"type": "about:blank", "title": "Not found"}).encode()
)
_MOVED: Final = Answer(302, {"location": "/sign-in"})
_PAGE: Final = Answer(200, _HTML, b"<p>sign in")


def _to_writes(answer: Answer) -> Fault:
    return lambda method, _: None if method == "GET" else answer


#: Faults by name, none of which says anything about an entity.
FAULTS: Final[dict[str, Fault]] = {
    "404 page": lambda *_: NOT_FOUND_PAGE,
    "302": lambda *_: _MOVED,
    "page": lambda *_: _PAGE,
    "empty": lambda *_: Answer(200),
    "404 page to writes": _to_writes(NOT_FOUND_PAGE),
    "405 page to writes": _to_writes(NOT_FOUND_PAGE._replace(status=405)),
    "302 to writes": _to_writes(_MOVED),
    "page to writes": _to_writes(_PAGE),
}


def bare_404(_path: str, _accept: str, answer: Answer) -> Answer:
    """Removes the bodies of 404, as some proxies do."""
    return Answer(404) if answer.status == 404 else answer


class FaultyProxy(ThreadingHTTPServer):
    """fault, change: the current ones, if any."""

    daemon_threads = True

    def __init__(self, target: str, fault: Fault | None, change: Change | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = httpx.Client(base_url=target, timeout=60, trust_env=False)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.fault, self.change = fault, change


@contextmanager
def faulty_proxy(target: str, fault: Fault | None = None, change: Change | None = None) -> Iterator[FaultyProxy]:
    """A running proxy in front of the registry with this URL."""
    with FaultyProxy(target, fault, change) as proxy:
        Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            proxy.client.close()


class _Handler(BaseHTTPRequestHandler):
    server: FaultyProxy

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = self.server.fault
        answer = fault(self.command, self.path) if fault else None
        self._send(answer or self._forward(body))

    def _forward(self, body: bytes) -> Answer:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN_HEADERS}
        received = self.server.client.request(self.command, self.path, content=body, headers=headers)
        kept_headers = {name: value for name, value in received.headers.items() if name not in _OWN_HEADERS}
        answer = Answer(received.status_code, kept_headers, received.content)
        change = self.server.change
        return change(self.path, self.headers.get("accept", ""), answer) if change else answer

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {**answer.headers, "content-length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - names of the standard library

    def log_message(self, *_: object) -> None:
        """Logs nothing."""
