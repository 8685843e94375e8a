"""Readers that follow both feeds of served registries during many writes, and a server that stops during a read.

A reader gets every event of the log once and in order, by streams as well as by long polls.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from annals.api.cli.server import GRACE_SECONDS
from annals.projections.entities.view_pool import ViewPool
from annals.projections.events.xregistry_events import XRegistryEvents
from tests.support.serving import serving

WRITERS = 16
TURNS = 6
LAST = "/schemagroups/last"
EVENT_STREAM = "text/event-stream"
FORMS = {"/-/events": "application/cloudevents-batch+json", "/-/log": "application/json"}
Json = Any


class Servers(NamedTuple):
    """Server processes on one store."""

    urls: Sequence[str]
    database: str


@pytest.fixture(params=["sqlite", "postgresql, two processes"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    """A registry, on SQLite served by one process, on PostgreSQL by two."""
    kind, _, two = request.param.partition(",")
    database = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    with ExitStack() as stack:
        places = [tmp_path / str(number) for number in range(2 if two else 1)]
        urls = []
        for place in places:
            place.mkdir()
            urls.append(stack.enter_context(serving(database, place)).url)
        yield Servers(urls, database)


def test_readers_that_follow_miss_nothing(servers: Servers) -> None:
    # EV-78, EV-79: interrupted streams, and long polls with small and large pages, return each event once and in commit
    # order, on every process
    found = asyncio.run(run_readers_and_writers(servers.urls))
    events, log = expected(servers.database)
    assert len(events) > WRITERS * TURNS
    for way, seen in found.items():
        assert seen == (events if "/-/events" in way else log), way


def expected(database: str) -> tuple[list[str], list[int]]:
    """The ids of all events and the positions of the log, in order."""
    readers = ViewPool(database)
    with readers.view() as view:
        log, messages = view.log, XRegistryEvents().messages
        interactions = log.interactions(0, 1_000_000)
        rows = {each.first: list(log.events(each.first, each.last)) for each in interactions}
    readers.close()
    ids = [message.id for each in interactions for message in messages(each, rows[each.first])]
    return ids, [row.position for some in rows.values() for row in some]


async def run_readers_and_writers(urls: Sequence[str]) -> dict[str, list[Json]]:
    """Runs all readers and writers concurrently; returns the ids or positions that each reader got."""
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=64)) as http:
        reading = {
            f"{way.__name__} {url}{path} {size}": asyncio.create_task(reader(way, http, url, path, size))
            for url in urls
            for path in FORMS
            for way, size in ((streamed, 7), (streamed, 1000), (polled, 3), (polled, 1000))
        }
        await asyncio.gather(*(writer(http, urls, number) for number in range(WRITERS)))
        assert (await http.put(urls[0] + LAST, json={})).status_code == 201
        return dict(zip(reading, await asyncio.wait_for(asyncio.gather(*reading.values()), 40), strict=True))


async def writer(http: httpx.AsyncClient, urls: Sequence[str], number: int) -> None:
    for turn in range(TURNS):
        body = {f"g{number}": {"name": f"turn {turn}"}, f"shared{turn}": {"name": f"of {number}"}}
        answer = await http.post(urls[(number + turn) % len(urls)] + "/schemagroups", json=body)
        assert answer.status_code == 200, answer.text


async def reader(way: Any, http: httpx.AsyncClient, url: str, path: str, size: int) -> list[Json]:
    """Ids of events, or positions, up to the last write. size: events of a stream or a page."""
    seen: list[Json] = []
    async for event in way(http, url, path, size):
        if "topic" in event or "specversion" in event:
            seen.append(event["id"] if "specversion" in event else event["position"])
        if event.get("subject", event.get("xid")) == LAST:
            break
    return seen


async def streamed(http: httpx.AsyncClient, url: str, path: str, size: int) -> AsyncIterator[Json]:
    """Reads a stream. Closes it after `size` events, and resumes with the last id."""
    last = ""
    while True:
        headers = {"accept": EVENT_STREAM} | ({"last-event-id": last} if last else {})
        async with http.stream("GET", url + path, headers=headers) as answer:
            count = 0
            async for block in blocks(answer):
                last = block.get("id", last)
                if "data" in block:
                    yield json.loads(block["data"])
                    count += "id" in block
                if count >= size and "id" in block:
                    break


async def blocks(answer: httpx.Response) -> AsyncIterator[dict[str, str]]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield fields
            fields = {}


async def polled(http: httpx.AsyncClient, url: str, path: str, size: int) -> AsyncIterator[Json]:
    """Long polls, following the links in the responses."""
    url_path = f"{path}?limit={size}&wait=10"
    while True:
        answer = await http.get(url + url_path, headers={"accept": FORMS[path]})
        for event in answer.json():
            yield event
        [url_path] = re.findall(r"<http://[^/>]+(/[^>]*)>;rel=next", answer.headers["link"])


def test_a_server_stops_with_a_reader_on_it(sqlite_url: str, tmp_path: Path) -> None:
    # the server ends an open stream immediately, without waiting for a timeout, and sends the position of the reader
    with serving(sqlite_url, tmp_path) as served, httpx.Client(timeout=20) as http:
        with http.stream("GET", f"{served.url}/-/events", headers={"accept": EVENT_STREAM}) as answer:
            pieces = answer.iter_raw()
            assert next(pieces).startswith(b"retry:")
            began = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            # the log has 3 events that this feed does not contain, and the server may not have read them yet
            assert b"".join(pieces) in (b": \nid: 0\n\n", b": \nid: 3\n\n")
        served.process.wait(timeout=60)
        assert time.monotonic() - began < GRACE_SECONDS
    printed = (tmp_path / "serve.log").read_text()
    assert "Application shutdown complete" in printed and "ERROR" not in printed
