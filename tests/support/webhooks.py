"""Webhooks with real sockets in a separate thread: each path is a sink, and a test sets its responses."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class ReceivedEvent(NamedTuple):
    """An event received in structured mode. headers: of the request, names in lower case. at: the time of arrival."""

    event: dict[str, Any]
    headers: Mapping[str, str]
    at: float


@dataclass
class Webhooks:
    """consent_requests: headers of OPTIONS requests by path. received: events by path.

    answer: returns the status for an event. consents: whether responses to OPTIONS grant permission to deliver.
    is_blocked: events get no response while it is set. delay: seconds before each response to an event.
    """

    url: str = ""
    consent_requests: dict[str, list[Mapping[str, str]]] = field(default_factory=lambda: defaultdict(list))
    received: dict[str, list[ReceivedEvent]] = field(default_factory=lambda: defaultdict(list))
    answer: Callable[[str, dict[str, Any]], int] = lambda path, event: 204
    consents: bool = True
    is_blocked: bool = False
    delay: float = 0.0

    def events(self, path: str) -> list[dict[str, Any]]:
        """The events received at a path, in order."""
        return [each.event for each in self.received[path]]

    def subjects(self, path: str) -> list[str]:
        """The subjects of the events received at a path, in order."""
        return [each.event["subject"] for each in self.received[path]]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The sender may be killed at any time.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                method, path, _ = line.decode().split()
                headers: dict[str, str] = {}
                while (header := (await reader.readline()).decode().strip()) != "":
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                writer.write(await self._answered(method, path, headers, body))
        writer.close()

    async def _answered(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        if method == "OPTIONS":
            self.consent_requests[path].append(headers)
            consent = "WebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: *\r\n" if self.consents else ""
            return f"HTTP/1.1 200 OK\r\n{consent}Content-Length: 0\r\n\r\n".encode()
        event = json.loads(body)
        self.received[path].append(ReceivedEvent(event, headers, time.monotonic()))
        while self.is_blocked:
            await asyncio.sleep(0.01)
        if self.delay:
            await asyncio.sleep(self.delay)
        return f"HTTP/1.1 {self.answer(path, event)} So\r\nContent-Length: 0\r\n\r\n".encode()

    async def _run(self, started: threading.Event, over: asyncio.Event) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await over.wait()
        server.close()


@contextmanager
def webhooks() -> Iterator[Webhooks]:
    """Serves webhooks during the block."""
    found, started = Webhooks(), threading.Event()
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(found._run(started, over)), daemon=True)
    thread.start()
    started.wait()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
