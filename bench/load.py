"""Requests a second that a server answers: by wrk where it is installed, else by a client of our own."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httptools

CONNECTIONS: Final = 8
_RATE: Final = re.compile(r"Requests/sec:\s+([\d.]+)")
_BAD: Final = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")


def client() -> str:
    """What the requests come from."""
    return "wrk" if shutil.which("wrk") else "the client in bench/load.py, which is slower than wrk"


def rate(url: str, paths: Sequence[str], seconds: float, folder: Path, connections: int = CONNECTIONS) -> float:
    """GETs a second, the paths in turn. Raises: RuntimeError when one is not answered with 2xx."""
    if shutil.which("wrk"):
        return _wrk(url, paths, seconds, folder, connections)
    return asyncio.run(_own(url, paths, seconds, connections))


def _wrk(url: str, paths: Sequence[str], seconds: float, folder: Path, connections: int) -> float:
    script = folder / "paths.lua"
    listed = ", ".join(f'wrk.format("GET", "{path}")' for path in paths)
    script.write_text(f"local all, i\ninit = function() all = {{{listed}}}; i = 0 end\n"
                      "request = function() i = i % #all + 1; return all[i] end\n")  # fmt: skip
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script), url]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if bad := _BAD.search(said):
        raise RuntimeError(bad[0])
    return float(_RATE.findall(said)[0])


async def _own(url: str, paths: Sequence[str], seconds: float, connections: int) -> float:
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    loop = asyncio.get_running_loop()
    turns = cycle([f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode() for path in paths])
    began = time.perf_counter()
    asking = [_Asking(turns, loop.create_future(), began + seconds) for _ in range(connections)]
    for one in asking:
        await loop.create_connection(partial(_same, one), parts.hostname, parts.port)
    counts = await asyncio.gather(*(one.done for one in asking))
    return sum(counts) / (time.perf_counter() - began)


def _same(one: _Asking) -> _Asking:
    return one


class _Asking(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, turns: cycle[bytes], done: asyncio.Future[int], until: float) -> None:
        self.done = done
        self._turns, self._until, self._count = turns, until, 0
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if not 200 <= status < 300:
            self.done.set_exception(RuntimeError(f"status {status}"))
            return
        self._count += 1
        if time.perf_counter() < self._until:
            self._ask()
        else:
            self._transport.close()
            self.done.set_result(self._count)

    def _ask(self) -> None:
        self._transport.write(next(self._turns))
