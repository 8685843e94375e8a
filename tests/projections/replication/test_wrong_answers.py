"""Answers for a log that are not from a registry, such as those of a proxy: a link fails, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import httpx
import pytest

from tests.support.polling import until
from tests.support.registries.restarted import registries, wait_until_equal_logs

_NDJSON = {"content-type": "application/x-ndjson"}


class Answer(NamedTuple):
    """An answer of a proxy."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _without_last_line(answer: Answer) -> Answer:
    return answer._replace(body=b"".join(answer.body.splitlines(keepends=True)[:-1]))


#: What a proxy makes of the answer for the log, and what the link says about it.
_ANSWERS: dict[str, tuple[Callable[[Answer], Answer], str]] = {
    "empty": (lambda answer: Answer(200, _NDJSON, b""), "without a link to its next page"),
    "no link": (lambda answer: Answer(200, _NDJSON, answer.body), "without a link to its next page"),
    "strange link": (
        lambda answer: Answer(200, _NDJSON | {"link": "</-/log?after=x>;rel=next"}, b""),
        "without a link to its next page",
    ),
    "no content": (lambda answer: Answer(204, answer.headers, b""), "answers 204 with application/x-ndjson"),
    "moved": (lambda answer: Answer(302, {"location": "/elsewhere"}, b""), "answers 302 with no content type"),
    "page": (
        lambda answer: Answer(200, {"content-type": "text/html; charset=utf-8"}, b"<p>sign in"),
        "answers 200 with text/html, not 200 with application/x-ndjson",
    ),
    "cut off": (_without_last_line, "the feed ends within an interaction"),
}


@contextmanager
def changing_proxy(url: str, change: Callable[[Answer], Answer]) -> Iterator[tuple[str, list[bool]]]:
    """A proxy that changes answers for `/-/log` while the yielded list is not empty; and its URL."""
    changes = [True]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_log = self.path.startswith("/-/log?") and self.headers["accept"] == _NDJSON["content-type"]
            request_headers = {name: self.headers[name] for name in ("accept", "authorization")}
            received = httpx.get(url + self.path, headers=request_headers, timeout=60)
            names = ("content-type", "link")
            headers = {name: value for name in names if (value := received.headers.get(name)) is not None}
            answer = Answer(received.status_code, headers, received.content)
            self.send(change(answer) if is_log and changes else answer)

        def send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {**answer.headers, "content-length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", changes
        finally:
            server.shutdown()


@pytest.mark.parametrize("case", _ANSWERS)
def test_a_wrong_answer_moves_no_cursor(tmp_path: Path, case: str) -> None:
    """LEG-910, LEG-913: events are missed by no answer; the link says what is wrong with it, and continues later."""
    change, said = _ANSWERS[case]
    with registries(tmp_path, "a", "b", places=None) as (a, b), changing_proxy(a.url, change) as (url, changes):
        a.write("g/s/1")
        b.link("a", url, interval=1)
        until(lambda: said in b.status("a").get("error", ""))
        assert b.status("a")["state"] == "failing"
        assert b.status("a").get("position", 0) < a.head()["position"]
        changes.clear()
        wait_until_equal_logs(a, b)
