"""A small real HTTP receiver in a thread of its own, which writes down what it is sent."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


class Counting:
    """events: by path, as they came, in structured mode; times: when. seconds: that an answer takes."""

    def __init__(self) -> None:
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.times: dict[str, list[float]] = {}
        self.seconds = 0.0
        self.url = ""
        self._parsed = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                path, length = line.split()[1].decode(), 0
                while (header := (await reader.readline()).lower()) != b"\r\n":
                    if header.startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                body = await reader.readexactly(length)
                self.times.setdefault(path, []).append(time.perf_counter())
                self.events.setdefault(path, []).append(json.loads(body))
                if self.seconds:
                    await asyncio.sleep(self.seconds)
                writer.write(_DONE)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever sent it was killed
        finally:
            writer.close()

    async def _run(self, started: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await stop.wait()
        server.close()


@contextmanager
def counting() -> Iterator[Counting]:
    """A receiver that answers 204 to everything."""
    receiver, started = Counting(), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(receiver._run(started, stop)), daemon=True)
    thread.start()
    started.wait()
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
