"""A link whose source keeps sending bytes but never completes a response has the state `failing`."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

from tests.support.polling import until
from tests.support.registries.restarted import registries

_HASH: Final = 64 * b"0"
_HEAD: Final = b'{"position":9,"time":"2026-01-02T03:04:05.000000Z","chain":"%b","state":"%b"}' % (_HASH, _HASH)
_LOG_HEADERS: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nLink: </-/log?after=9>;rel=next\r\n"
    b"Content-Length: 100000\r\n\r\n"
)
#: The path whose response a source does not complete, the bytes that it sends first, and those that it repeats.
_DRIPS: Final = {
    "headers": ("/-/log/upstream", b"HTTP/1.1 200 OK\r\n", b"X-A: 1\r\n"),
    "answers": ("/-/log/head", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"{"),
    "lines": ("/-/log?", _LOG_HEADERS, b"{"),
    "nothing": ("/-/log?", _LOG_HEADERS, b"\n"),
}


class _Dripping:
    """A source that never completes the response for one path, but keeps sending bytes."""

    def __init__(self, drip: str, over: Event) -> None:
        self._path, self._before, self._drip = _DRIPS[drip]
        self._over = over
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4096)
            path = request.split()[1].decode()
            if not path.startswith(self._path):
                body, status = (_HEAD, b"200 OK") if path.startswith("/-/log/head") else (b"", b"404 Not Found")
                head = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
                connection.sendall(head + body)
                return
            connection.sendall(self._before)
            while not self._over.wait(0.5):
                connection.sendall(self._drip)


@contextmanager
def dripping() -> Iterator[dict[str, str]]:
    """URLs of such sources, by the key in `_DRIPS`."""
    over = Event()
    with ExitStack() as stack:
        stack.callback(over.set)
        found = {drip: _Dripping(drip, over) for drip in _DRIPS}
        for each in found.values():
            stack.callback(each.close)
        yield {drip: each.url for drip, each in found.items()}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_link_to_a_source_that_drips_is_failing(tmp_path: Path) -> None:
    """LEG-901: the status of a link reports missing progress, although bytes arrive."""
    with registries(tmp_path, "b") as (b,), dripping() as urls:
        for drip, url in urls.items():
            b.link(drip, url, scope={"groups": [f"/schemagroups/{drip}"]})
        began = time.monotonic()
        for drip in urls:
            until(partial(lambda drip: "made no progress for" in b.status(drip).get("error", ""), drip), 200)
            assert b.status(drip)["state"] == "failing"
        assert time.monotonic() - began > 20
        b.link("lines", urls["lines"], scope={"groups": ["/schemagroups/lines"]}, enabled=False)
        assert b.status("lines")["state"] == "resting"
