"""Several servers on one store, some of which are killed: four on PostgreSQL, and workers on one port on each database.

Clients write and read through any of them. All responses must be consistent with one log.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.registry.events import EntityEvent
from tests.support.polling import until
from tests.support.ports import free_port
from tests.support.serving import serving
from tests.support.session_histories import GROUPS, Seen, contradictions

SERVERS = 4
CLIENTS = 12
GROUP_COUNT = 5
Json = Any


class Cluster(Protocol):
    """Servers on one store, at these URLs."""

    @property
    def urls(self) -> Sequence[str]: ...

    def kill_one(self, chance: random.Random) -> None:
        """Kills a server with SIGKILL. Another one replaces it."""


class SeparateServers:
    """Servers with a port each; a killed server is restarted."""

    def __init__(self, database: str, folder: Path) -> None:
        self._database, self._folder, self._stack = database, folder, ExitStack()
        self._ports = [free_port() for _ in range(SERVERS)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports]
        self._servers = [self._start(number) for number in range(SERVERS)]

    def kill_one(self, chance: random.Random) -> None:
        number = chance.randrange(SERVERS)
        process = self._servers[number].process
        process.kill()
        process.wait(30)
        self._servers[number] = self._start(number)

    def close(self) -> None:
        self._stack.close()

    def _start(self, number: int) -> Any:
        place = self._folder / f"{number}.{time.monotonic_ns()}"
        place.mkdir()
        return self._stack.enter_context(serving(self._database, place, "--port", str(self._ports[number])))


class Workers:
    """Workers of one server, which replaces killed workers."""

    def __init__(self, url: str, parent: int) -> None:
        self.urls = [url]
        self._parent = parent

    def kill_one(self, chance: random.Random) -> None:
        if found := children_of(self._parent):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(found), signal.SIGKILL)


def children_of(parent: int) -> list[int]:
    """The process ids of a process's children."""
    result = subprocess.run(["pgrep", "--parent", str(parent)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in result.stdout.split()]


@contextmanager
def separate_servers(database: str, folder: Path) -> Iterator[Cluster]:
    servers = SeparateServers(database, folder)
    try:
        yield servers
    finally:
        servers.close()


@contextmanager
def workers(database: str, folder: Path) -> Iterator[Cluster]:
    with serving(database, folder, "--workers", "3") as served:
        yield Workers(served.url, served.process.pid)


SHORT, LONG = (20, 3), (150, 25)
CASES = {
    "four servers": (separate_servers, "postgres_url", SHORT),
    "workers, sqlite": (workers, "sqlite_url", SHORT),
    "workers, postgresql": (workers, "postgres_url", SHORT),
    "four servers, long": (separate_servers, "postgres_url", LONG),
    "workers, sqlite, long": (workers, "sqlite_url", LONG),
    "workers, postgresql, long": (workers, "postgres_url", LONG),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=pytest.mark.long) if size is LONG else name for name, (*_, size) in CASES.items()],
)
def test_one_log_explains_all_answers(case: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # no acknowledged write is lost or reordered; a read returns the state at the position that its response names; no
    # client reads a state older than one that it has seen
    start, fixture, (turns, kills) = CASES[case]
    database = request.getfixturevalue(fixture)
    with start(database, tmp_path) as cluster:
        history = asyncio.run(run_clients(cluster, turns, kills))
    assert list(contradictions(history, log_of(database))) == []
    acknowledged = [seen for seen in history if seen.is_acknowledged]
    assert len(acknowledged) > len(history) / 2
    assert {seen.is_write for seen in acknowledged} == {True, False}


def log_of(database: str) -> list[EntityEvent]:
    """The events of the log. Checks that it is consistent and has no gaps."""
    store = Store(database)
    try:
        assert [*verify_log(store), *verify_row_hashes(store)] == []
        found = list(store.events(0, 1_000_000))
        assert [position for position, _ in found] == list(range(1, store.log_end().position + 1))
        return [event for _, event in found]
    finally:
        store.close()


async def run_clients(cluster: Cluster, turns: int, kills: int) -> list[Seen]:
    """Runs all clients while servers are killed; returns the observations of all clients."""
    chance, history = random.Random(turns), list[Seen]()
    limits = httpx.Limits(max_connections=2 * CLIENTS, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(limits=limits, timeout=30) as http:
        clients = [Client(number, cluster.urls, http, history) for number in range(CLIENTS)]
        running = [asyncio.create_task(client.run(turns)) for client in clients]
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.2, 0.6))
            await asyncio.to_thread(cluster.kill_one, chance)
        await asyncio.gather(*running)
    return history


class Client:
    """One of many clients. It sends each request to a random server, and stores the last position that it received."""

    def __init__(self, number: int, urls: Sequence[str], http: httpx.AsyncClient, history: list[Seen]) -> None:
        self._number, self._urls, self._http, self._history = number, urls, http, history
        self._chance = random.Random(number)
        self._names = (f"{number}.{turn}" for turn in count())
        self._position = 0

    async def run(self, turns: int) -> None:
        for _ in range(turns):
            path = f"{GROUPS}g{self._chance.randrange(GROUP_COUNT)}"
            await self._write(path)
            async for _ in self._reads(path):
                pass

    async def _write(self, path: str) -> None:
        name, began = next(self._names), time.monotonic()
        answer = await self._send("PUT", path, json.dumps({"name": name}).encode())
        if answer is None or answer.status_code >= 500:
            self._add(path, True, name, 0, 0, began, is_acknowledged=False)
            return
        assert answer.status_code in (200, 201), answer.text
        self._add(path, True, name, answer.json()["epoch"], int(answer.headers["annals-position"]), began)

    async def _reads(self, path: str) -> AsyncIterator[None]:
        for read_path in (path, f"{GROUPS}g{self._chance.randrange(GROUP_COUNT)}"):
            began = time.monotonic()
            answer = await self._send("GET", f"{read_path}?waitfor={self._position}")
            if answer is None or answer.status_code >= 500:
                continue
            assert answer.status_code in (200, 404), answer.text
            found: Json = answer.json() if answer.status_code == 200 else {"epoch": 0, "name": ""}
            position = int(answer.headers["annals-position"])
            self._add(read_path, False, found["name"], found["epoch"], position, began)
            yield

    async def _send(self, method: str, path: str, content: bytes = b"") -> httpx.Response | None:
        """The response; None if it was lost."""
        try:
            return await self._http.request(method, self._chance.choice(self._urls) + path, content=content)
        except httpx.TransportError:
            await asyncio.sleep(0.05)
            return None

    def _add(
        self,
        path: str,
        is_write: bool,
        name: str,
        epoch: int,
        position: int,
        began: float,
        *,
        is_acknowledged: bool = True,
    ) -> None:
        ended = time.monotonic()
        self._history.append(
            Seen(self._number, path, is_write, name, epoch, self._position, position, began, ended, is_acknowledged)
        )
        self._position = max(self._position, position)


def test_a_worker_that_ends_is_replaced_and_none_outlives_its_parent(sqlite_url: str, tmp_path: Path) -> None:
    with serving(sqlite_url, tmp_path, "--workers", "2") as served:
        assert httpx.get(served.url).status_code == 200
        first = until(lambda: found if len(found := children_of(served.process.pid)) == 2 else None)
        os.kill(first[0], signal.SIGKILL)
        second = until(lambda: found if len(found := children_of(served.process.pid)) == 2 and found != first else None)
        assert first[1] in second
        served.process.kill()
        served.process.wait(30)
        until(lambda: not any(is_alive(pid) for pid in second))
    assert "worker 1 was ended by SIGKILL" in (tmp_path / "serve.log").read_text()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_stopping_server_stops_its_workers(sqlite_url: str, tmp_path: Path) -> None:
    with serving(sqlite_url, tmp_path, "--workers", "2") as served:
        assert httpx.get(served.url).status_code == 200
        pids = until(lambda: found if len(found := children_of(served.process.pid)) == 2 else None)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(60) == 0
        assert not any(is_alive(pid) for pid in pids)
    printed = (tmp_path / "serve.log").read_text()
    assert printed.count("Application shutdown complete") == 2 and "Traceback" not in printed


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_stopping_server_accepts_no_connections(sqlite_url: str, tmp_path: Path, workers: str) -> None:
    # a connection that nobody answers would keep a client waiting until the last request has ended
    with serving(sqlite_url, tmp_path, "--workers", workers) as served:
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as unfinished:
            unfinished.sendall(
                b"PUT /schemagroups/g HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            )
            assert unfinished.recv(100).startswith(b"HTTP/1.1 100")  # the server waits for the body
            served.process.send_signal(signal.SIGTERM)
            until(lambda: _refuses_connections(host, int(port)))
            assert served.process.poll() is None


def _refuses_connections(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return True
    return False
