"""A client process that sends requests over a few connections as fast as they are answered, and counts the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from annals.domain.values.json_text import dumps
from bench import samples

#: Resources of the group that lists and filters are asked of, and entities of one import.
LISTED: Final = 1000
IMPORTED: Final = 500

#: Method, path and JSON body of one request; no body: empty.
Asked = tuple[str, str, bytes]


class Workload(NamedTuple):
    """What is asked. requests: the requests from a number on, none of them twice. each: entities that one is about."""

    name: str
    connections: int
    requests: Callable[[int], Iterator[Asked]]
    each: int = 1


def prepare(url: str) -> None:
    """Puts in what the workloads read. Raises: RuntimeError."""
    schemas = {f"schema{n}": samples.schema(n) for n in range(LISTED)}
    asyncio.run(_run(url, iter([("POST", "/schemagroups", dumps({"listed": {"schemas": schemas}}))]), 1, 0))


def rate(url: str, number: int, start: int, seconds: float) -> tuple[float, int]:
    """Entities a second of the workload of a number, and the number that the next requests may start from.

    Raises: RuntimeError when a request is not answered with 2xx.
    """
    return rate_of(url, WORKLOADS[number], start, seconds)


def rate_of(url: str, workload: Workload, start: int, seconds: float) -> tuple[float, int]:
    """`rate` of a workload that other versions of the registry may not have."""
    began = time.perf_counter()
    done = asyncio.run(_run(url, workload.requests(start), workload.connections, seconds))
    return done * workload.each / (time.perf_counter() - began), start + done + workload.connections


def _created(start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "PUT", f"/schemagroups/made{n % 50}/schemas/schema{n}$details", dumps(samples.schema(n))


def _created_in(groups: int, start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "PUT", f"/schemagroups/of{groups}x{n % groups}/schemas/schema{n}$details", dumps(samples.schema(n))


def _deleted(start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "POST", "/schemagroups", samples.body(1, IMPORTED, 1_000_000 + n)
        yield "DELETE", f"/schemagroups/group{1_000_000 + n}/schemas", b""


def _versions(start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "POST", f"/schemagroups/deep/schemas/schema{n // 200}$details", dumps(samples.schema(n))


def _imports(start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "POST", "/schemagroups", samples.body(5, IMPORTED // 5 - 1, 1000 + 5 * n)


def _documents(start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "GET", f"/schemagroups/listed/schemas/schema{n % LISTED}/versions/1", b""


def _details(start: int) -> Iterator[Asked]:
    for n in count(start):
        yield "GET", f"/schemagroups/listed/schemas/schema{n % LISTED}$details", b""


def _same(path: str, start: int) -> Iterator[Asked]:
    for _ in count(start):
        yield "GET", path, b""


WORKLOADS: Final = (
    Workload("Create a schema, 1 client", 1, _created),
    Workload("Create a schema, 8 clients", 8, _created),
    Workload("Create a schema, 16 clients, one Group", 16, partial(_created_in, 1)),
    Workload("Create a schema, 16 clients, 16 Groups", 16, partial(_created_in, 16)),
    Workload("Add a Version, 1 client", 1, _versions),
    Workload(f"Import, {IMPORTED} entities a request", 1, _imports, IMPORTED),
    Workload(f"Import {IMPORTED} Resources and delete them", 1, _deleted),
    Workload("Read a document, 8 connections", 8, _documents),
    Workload("Read details, 8 connections", 8, _details),
    Workload(f"List of {LISTED:,}", 1, partial(_same, "/schemagroups/listed/schemas")),
    Workload(f"Filter {LISTED:,} by label", 1, partial(_same, "/schemagroups/listed/schemas?filter=labels.team=team3")),
    Workload("GET /", 1, partial(_same, "/")),
)


def workloads(text: str = "") -> Iterator[tuple[int, Workload]]:
    """The workloads whose names have a text, with their numbers."""
    return ((number, workload) for number, workload in enumerate(WORKLOADS) if text in workload.name)


async def _run(url: str, requests: Iterator[Asked], connections: int, seconds: float) -> int:
    """How many requests were answered before the time was over, and those under way then: at least one a connection."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    loop, until = asyncio.get_running_loop(), time.perf_counter() + seconds
    asking = [_Connection(requests, parts.netloc, loop.create_future(), until) for _ in range(connections)]
    for one in asking:
        await loop.create_connection(partial(_itself, one), parts.hostname, parts.port)
    return sum(await asyncio.gather(*(one.done for one in asking)))


class _Connection(asyncio.Protocol):
    """One connection that sends the next request as soon as the one before is answered."""

    def __init__(self, requests: Iterator[Asked], host: str, done: asyncio.Future[int], until: float) -> None:
        self.done = done
        self._requests, self._host, self._until, self._count = requests, host, until, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"the connection was closed: {error}"))

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if not 200 <= status < 300:
            self.done.set_exception(RuntimeError(f"status {status}"))
            self._transport.close()
            return
        self._count += 1
        if time.perf_counter() < self._until and self._parser.should_keep_alive():
            self._send()
        else:
            self.done.set_result(self._count)
            self._transport.close()

    def _send(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        method, path, body = next(self._requests, ("GET", "/-/livez", b""))
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._transport.write(f"{head}\r\n".encode() + body)


def _itself(one: _Connection) -> _Connection:
    return one
