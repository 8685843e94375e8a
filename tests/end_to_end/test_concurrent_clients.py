"""Many concurrent clients of served registries: one process, and two on one store.

The log contains every accepted write once and no refused one. Epochs are checked and counted as if the writes were
sequential. Positions have no gaps, no request fails, and a client can read what the server acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.registry.events import EntityEvent
from tests.support.serving import serving

CLIENTS = 32
TURNS = 4
SOURCE = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "resources": {"files": {"singular": "file", "hasdocument": False}},
        }
    }
}
ID = "xregistry-xregcorrelationid"
Json = Any


class WriteResponse(NamedTuple):
    """The response to one write of a client. name: the name that it wrote, unique for the path."""

    path: str
    status: int
    epoch: int
    name: str
    interaction: str


class Servers(NamedTuple):
    """Server processes on one store."""

    urls: Sequence[str]
    database: str


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long), "postgresql, two processes"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    """A registry of dirs with files, on SQLite served by one process, on PostgreSQL by one or two."""
    kind, _, two = request.param.partition(",")
    database = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    with ExitStack() as stack:
        places = [tmp_path / str(number) for number in range(2 if two else 1)]
        urls = []
        for place in places:
            place.mkdir()
            urls.append(stack.enter_context(serving(database, place)).url)
        assert httpx.put(f"{urls[0]}/modelsource", json=SOURCE).status_code == 200
        yield Servers(urls, database)


class Client:
    """One of many clients, which sends its requests to the processes in turn."""

    def __init__(self, number: int, urls: Sequence[str], http: httpx.AsyncClient) -> None:
        self.number = number
        self._urls = cycle([*urls[number % len(urls) :], *urls[: number % len(urls)]])
        self._http = http

    async def send(self, method: str, path: str, body: Json = None) -> httpx.Response:
        answer = await self._http.request(method, next(self._urls) + path, json=body)
        assert answer.status_code < 500, answer.text
        return answer

    async def read(self, path: str) -> Json:
        answer = await self.send("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def write(self, method: str, path: str, name: str, **members: Json) -> WriteResponse:
        answer = await self.send(method, path, {"name": name, **members})
        epoch = answer.json().get("epoch", 0)
        return WriteResponse(path, answer.status_code, epoch, name, answer.headers.get(ID, ""))


def test_clients_that_write_the_same_and_different_things(servers: Servers) -> None:
    # TRAP-7, EV-79: every accepted write is in the log once, in some order
    # ENT-52: of several writes with the same epoch, one is accepted
    responses = asyncio.run(
        run_all_clients(servers.urls, blind_writes, checked_writes, versions_of_one_resource, own_entities)
    )
    events = log_of(servers.database)
    accepted = [one for one in responses if one.status in (200, 201)]
    assert {one.status for one in responses} <= {200, 201, 400}
    assert len({one.interaction for one in accepted}) == len(accepted)
    assert not any(one.interaction for one in responses if one.status == 400)
    recorded = Counter((event.xregcorrelationid, event.xid) for event in events)
    assert [one for one in accepted if recorded[one.interaction, one.path] != 1] == []
    for one in accepted:
        assert (one.epoch, one.name) in states(events, one.path)
    written = Counter(one.path for one in accepted)
    for path in ("/dirs/blind", "/dirs/checked"):
        assert [epoch for epoch, _ in states(events, path)] == list(range(1, written[path] + 1))
    assert written["/dirs/checked"] > TURNS  # one client wins in each turn
    assert {name for _, name in states(events, "/dirs/blind")} == {
        one.name for one in responses if one.path == "/dirs/blind"
    }


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


def states(events: Sequence[EntityEvent], path: str) -> list[tuple[int, str]]:
    """Epochs and names of an entity, oldest first."""
    return [(event.attributes["epoch"], event.attributes.get("name", "")) for event in events if event.xid == path]


async def run_all_clients(urls: Sequence[str], *actions: Any) -> list[WriteResponse]:
    """Runs all actions for all clients concurrently; returns the responses to all writes."""
    # A connection that the server closes as idle in this moment would fail a request, so the client closes it earlier.
    limits = httpx.Limits(max_connections=CLIENTS, keepalive_expiry=1)
    async with httpx.AsyncClient(limits=limits, timeout=30) as http:
        clients = [Client(number, urls, http) for number in range(CLIENTS)]
        first = await clients[0].write("PUT", "/dirs/checked", "first")
        found = await asyncio.gather(*(run_actions(client, actions) for client in clients))
    return [first, *(one for responses in found for one in responses)]


async def run_actions(client: Client, actions: Sequence[Any]) -> list[WriteResponse]:
    order = [*actions[client.number % len(actions) :], *actions[: client.number % len(actions)]]
    return [one for action in order for one in await action(client)]


async def blind_writes(client: Client) -> list[WriteResponse]:
    """All clients write one Group, without an epoch."""
    return [await client.write("PUT", "/dirs/blind", f"{client.number}.{turn}") for turn in range(TURNS)]


async def checked_writes(client: Client) -> list[WriteResponse]:
    """All clients update one Group with the epoch that they read: of those with the same epoch, one is accepted."""
    responses = []
    for turn in range(TURNS):
        seen = await client.read("/dirs/checked")
        name = f"{client.number}.{turn}"
        one = await client.write("PATCH", "/dirs/checked", name, epoch=seen["epoch"])
        assert one.status == 400 or one.epoch == seen["epoch"] + 1
        responses.append(one)
    return responses


async def versions_of_one_resource(client: Client) -> list[WriteResponse]:
    """All clients add Versions to one Resource, and can read each of them immediately."""
    responses = []
    for turn in range(TURNS):
        name = f"{client.number}.{turn}"
        response = await client.send("POST", "/dirs/shared/files/f", {"name": name})
        path = response.json()["xid"]
        assert (response.status_code, (await client.read(path))["name"]) == (201, name)
        responses.append(WriteResponse(path, 201, 1, name, response.headers[ID]))
    return responses


async def own_entities(client: Client) -> list[WriteResponse]:
    """Each client updates its own Resource, and always reads the last state."""
    path, responses = f"/dirs/own/files/of{client.number}", []
    for turn in range(TURNS):
        epoch = {"epoch": turn} if turn else {}
        one = await client.write("PUT", path, f"turn {turn}", versionid="1", **epoch)
        entity = await client.read(path)
        assert (one.status, entity["epoch"], entity["name"]) == (200 if turn else 201, turn + 1, one.name)
        responses.append(one)
    return responses
