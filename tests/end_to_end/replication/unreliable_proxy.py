"""A TCP proxy between two registries that can drop, delay and stall connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class UnreliableProxy:
    """A TCP proxy. url: leads through the proxy to the other registry.

    silent: connections stay open, but no data passes. pause: delay before each piece, in seconds. piece: maximum number
    of bytes in one write. carried: number of bytes that have passed.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._there = (parts.hostname, parts.port)
        self.url = ""
        self.silent = False
        self.pause = 0.0
        self.piece = 1 << 16
        self.carried = 0
        self._up = True
        self._loop = asyncio.new_event_loop()
        self._ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Aborts all connections; new ones are aborted immediately."""
        self._up = False
        self._loop.call_soon_threadsafe(self._end_all)

    def mend(self) -> None:
        """Accepts connections again."""
        self._up = True

    def _end_all(self) -> None:
        for end in list(self._ends):
            end.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._up:
            writer.transport.abort()
            return
        with suppress(OSError):
            other_reader, other_writer = await asyncio.open_connection(*self._there)
            self._ends |= {writer, other_writer}
            await asyncio.gather(self._carry(reader, other_writer), self._carry(other_reader, writer))
            self._ends -= {writer, other_writer}
        writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while found := await reader.read(self.piece):
                while self.silent:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(self.pause)
                self.carried += len(found)
                writer.write(found)
                await writer.drain()
        writer.close()

    async def _run(self, started: threading.Event, over: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await over.wait()
        server.close()
        carrying = asyncio.all_tasks() - {asyncio.current_task()}
        for each in carrying:
            each.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)


@contextmanager
def unreliable_proxy(url: str) -> Iterator[UnreliableProxy]:
    """A proxy to a registry."""
    found, started, over = UnreliableProxy(url), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: found._loop.run_until_complete(found._run(started, over)), daemon=True)
    thread.start()
    started.wait()
    try:
        yield found
    finally:
        found._loop.call_soon_threadsafe(over.set)
        thread.join(10)
