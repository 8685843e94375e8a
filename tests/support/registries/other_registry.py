"""A server in place of another registry, with a fixed answer for each request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final, NamedTuple

from annals.projections.replication.log.log_lines import NDJSON


class Answer(NamedTuple):
    """An answer of the server."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}


def json_answer(value: Any, status: int = 200) -> Answer:
    """An answer with a JSON value."""
    return Answer(json.dumps(value).encode(), status)


_NO_PART: Final = {"count": 0, "hash": "00" * 32}
#: Answers of a registry whose log ends at position 3, and in which no entity is in scope.
DEFAULTS: Final = {
    "GET /-/log/upstream": json_answer({"registry": "other", "follows": []}),
    "GET /-/log/head": json_answer({"position": 3, "state": "00" * 32, "time": "2026-01-01T00:00:00Z"}),
    "GET /-/log": Answer(b"", headers={"content-type": NDJSON, "link": "</-/log?after=3>;rel=next"}),
    "GET /-/hash/schemagroups/g": json_answer({**_NO_PART, "parts": [_NO_PART]}),
    "POST /subscriptions": json_answer({"id": "s"}, 201),
}


@dataclass
class OtherRegistry:
    """Such a server. answers: by method and path without query; 404 for others. counts: of requests, the same way."""

    url: str
    answers: dict[str, Answer]
    counts: Counter[str] = field(default_factory=Counter)


@contextmanager
def other_registry(answers: Mapping[str, Answer] | None = None) -> Iterator[OtherRegistry]:
    """Runs such a server. answers: in addition to `DEFAULTS`, or instead of some of them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._read_body()
            name = f"{self.command} {self.path.partition('?')[0]}"
            other.counts[name] += 1
            answer = other.answers.get(name, json_answer({}, 404))
            self.send_response(answer.status)
            for header, value in {**answer.headers, "content-length": str(len(answer.body))}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def _read_body(self) -> None:
            if self.headers.get("transfer-encoding") != "chunked":
                self.rfile.read(int(self.headers.get("content-length", "0")))
                return
            while (size := int(self.rfile.readline(), 16)) > 0:
                self.rfile.read(size + 2)
            self.rfile.readline()

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        other = OtherRegistry(f"http://127.0.0.1:{server.server_port}", {**DEFAULTS, **(answers or {})})
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield other
        finally:
            server.shutdown()
