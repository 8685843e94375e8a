"""A receiver of events as a process of its own: `python -m bench.receiver` says where it is.

A GET of `/seen` answers with the path, the subject and the `time.perf_counter()` of each request since the last one.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httptools
import httpx
import uvloop

_SUBJECT: Final = re.compile(rb'"subject": ?"([^"]*)"')
_DONE: Final = b"HTTP/1.1 204 No Content\r\n\r\n"


class _Connection(asyncio.Protocol):
    def __init__(self, seen: list[tuple[str, str, float]]) -> None:
        self._seen = seen
        self._parser = httptools.HttpRequestParser(self)
        self._path, self._body = "", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path, self._body = url.decode(), b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._path == "/seen":
            body = json.dumps(self._seen).encode()
            self._seen.clear()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            return
        found = _SUBJECT.search(self._body)
        self._seen.append((self._path, found[1].decode() if found else "", time.perf_counter()))
        self._transport.write(_DONE)


async def _serve() -> None:
    seen: list[tuple[str, str, float]] = []
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(seen), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Receiver:
    """Where one listens, and what it has seen."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=60)

    def arrivals(self) -> list[Any]:
        """The requests since the last look."""
        found: list[Any] = self._client.get("/seen").json()
        return found

    def wait(self, count: int, seconds: float = 120) -> list[Any]:
        """So many requests. Raises: TimeoutError."""
        until, found = time.monotonic() + seconds, self.arrivals()
        while len(found) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(found)} of {count}")
            time.sleep(0.1)
            found += self.arrivals()
        return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that runs."""
    process = subprocess.Popen([sys.executable, "-m", "bench.receiver"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Receiver(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    uvloop.run(_serve())
