"""Sinks that respond badly or not at all, next to others: a served registry and real sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Iterator, Sized
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.polling import until
from tests.support.receivers import listener, respond_with
from tests.support.registries.subscribed import Registry, registry
from tests.support.webhooks import Webhooks, webhooks

CREATED: Final = ["io.xregistry.version.created"]
#: Maximum size of a response that is too large, in bytes.
MUCH: Final = 100 << 20
SUBSCRIPTIONS: Final = 1_000
DEAD: Final = 10
WRITES: Final = 100


@pytest.fixture
def sinks() -> Iterator[Webhooks]:
    with webhooks() as sinks:
        yield sinks


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads a request, and resets the connection."""
    await reader.readuntil(b"\r\n\r\n")
    at_once = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    writer.close()


def _has(several: Sized, number: int) -> bool:
    return len(several) == number


def _letters(server: Registry, id: str) -> list[tuple[Any, ...]]:
    letters = server.done("GET", f"/subscriptions/{id}/deadletters")
    return [(each["reason"], each["code"], each["attempts"]) for each in letters]


def test_what_sinks_do(sqlite_url: str, tmp_path: Path, sinks: Webhooks) -> None:
    # SUB-821, 823, 902, 806, 8.3: each failing sink has its own outcome, and none delays a good one
    said = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal said
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 So\r\nContent-Length: %d\r\n\r\n" % MUCH)
        try:
            while said < MUCH:
                writer.write(bytes(1 << 16))
                await writer.drain()
                said += 1 << 16
        except OSError:
            return
        finally:
            writer.close()

    sinks.answer = lambda path, event: 500 if path == "/fails" else 204
    redirect = f"HTTP/1.1 307 So\r\nLocation: {sinks.url}/trap\r\nContent-Length: 0\r\n\r\n".encode()
    handles = {
        "redirects": respond_with(redirect),
        "hangs": respond_with(stay=True),
        "resets": _reset,
        "endless": endless,
    }
    settings = {"timeout": 4, "retry": {"maxattempts": 2, "initialdelay": 1, "multiplier": 1, "maxdelay": 1}}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(listener(handle)) for name, handle in handles.items()}
        urls = {name: f"http://127.0.0.1:{port}/" for name, port in ports.items()} | {"fails": f"{sinks.url}/fails"}
        server = stack.enter_context(registry(sqlite_url, tmp_path, ANNALS_SINKS_VALIDATION="off"))
        ids = {name: server.subscribe(url, types=CREATED, settings=settings) for name, url in urls.items()}
        server.subscribe(f"{sinks.url}/good", types=CREATED)
        sent = []
        for number in range(3):
            sent.append(time.monotonic())
            server.write(f"a/s/{number}")
        until(lambda: len(sinks.received["/good"]) == 3)
        late = [received.at - at for received, at in zip(sinks.received["/good"], sent, strict=True)]
        assert max(late) < 4.0, "as late as an event that waits for an attempt at another sink"
        for id in ids.values():
            until(partial(lambda id: server.status(id)["lag"] == 0, id))
        # A dead letter is stored shortly after the lag is 0.
        for name, letter in (
            ("fails", ("maxattempts", "500", 2)),
            ("hangs", ("maxattempts", "timeout", 2)),
            ("resets", ("maxattempts", "connection", 2)),
            ("redirects", ("rejected", "307", 1)),
        ):
            until(partial(lambda name: len(_letters(server, ids[name])) == 3, name))
            assert _letters(server, ids[name]) == [letter] * 3
        assert _letters(server, ids["endless"]) == []
        assert not sinks.received["/trap"]
        assert 0 < said < MUCH / 2


@pytest.mark.long
def test_dead_sinks_among_many(sqlite_url: str, tmp_path: Path, sinks: Webhooks) -> None:
    # SUB-806: ten of a thousand sinks accept requests and never respond; the others get their events in time
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1024) as silent,
        registry(sqlite_url, tmp_path, ANNALS_SINKS_VALIDATION="off") as server,
    ):
        dead = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        ids = [server.subscribe(dead, types=CREATED) for _ in range(DEAD)]
        for number in range(SUBSCRIPTIONS - DEAD):
            filters = [{"suffix": {"subject": f"/{number % WRITES}"}}]
            server.subscribe(f"{sinks.url}/{number % WRITES}", types=CREATED, filters=filters)
        late: list[float] = []
        for number in range(WRITES):
            # A write waits for the deliveries of the previous one, so that a slow machine does not count as a delay.
            sent = time.monotonic()
            server.write(f"a/s/{number}")
            received = sinks.received[f"/{number}"]
            until(partial(_has, received, len(range(number, SUBSCRIPTIONS - DEAD, WRITES))))
            late += (event.at - sent for event in received)
        # An attempt times out after ten seconds: an event that waits for such a sink would be that late.
        assert max(late) < 9.0, sorted(late)[-100:]
        assert {server.status(id)["pending"] > 0 for id in ids} == {True}
