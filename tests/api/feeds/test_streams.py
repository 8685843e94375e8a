"""Feeds as server-sent events: they continue, resume, and release resources when a reader leaves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from annals.api.feeds import feeds
from annals.api.feeds.formats import PositionLines
from annals.api.feeds.reader import FeedReader
from annals.api.feeds.sources import EventFeedSource, LogFeedSource
from annals.api.registry.log_head_watcher import MIN_POLL_SECONDS, POLL_SECONDS, LogHeadWatcher
from tests.api.feeds.streams import Sent, Stream, reading
from tests.support.registries.in_process import Api, create, serving


def event_summaries(found: list[Sent]) -> list[tuple[str, str, str]]:
    """Id to resume with, type and subject of each event."""
    return [(each.last, each.event.removeprefix("io.xregistry."), json.loads(each.data)["subject"]) for each in found]


def test_a_stream_goes_on_and_resumes(store_url: str) -> None:
    # EV-79: past and new events, each once; Last-Event-ID continues after the last event that a reader has
    create(store_url)

    async def follow(api: Api) -> None:
        async with reading(api, "/-/events") as stream:
            await api.client.put("/dirs/d1", json={})
            first = await stream.until(2)
            assert event_summaries(first) == [("4", "registry.updated", "/"), ("5", "group.created", "/dirs/d1")]
            await api.client.put("/dirs/d1", json={})
            assert event_summaries(await stream.until(3))[2:] == [("6", "group.updated", "/dirs/d1")]
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["x-accel-buffering"] == "no"  # or nginx holds events back until its buffer is full
        async with reading(api, "/-/events?after=0", last_event_id="5") as stream:
            assert event_summaries(await stream.until(1)) == [("6", "group.updated", "/dirs/d1")]
        async with reading(api, "/-/events?after=4&limit=1") as stream:
            assert event_summaries(await stream.until(1)) == [("5", "group.created", "/dirs/d1")]

    with serving(store_url) as api:
        api.runner.run(follow(api))


def test_a_position_is_named_by_its_last_event(api: Api) -> None:
    # EV-79: a reader that is cut off between two events of one position gets both again, and loses none
    api.done("PUT", "/dirs/d1", {"deprecated": {"documentation": "http://x/"}})

    async def follow() -> None:
        async with reading(api, "/-/events") as stream:
            assert event_summaries(await stream.until(3))[1:] == [
                ("4", "group.created", "/dirs/d1"),
                ("5", "group.deprecation", "/dirs/d1"),
            ]

    api.runner.run(follow())


def test_the_log_as_a_stream(api: Api) -> None:
    # EV-79: an interaction's line comes before its events and has no position of its own
    async def follow() -> None:
        async with reading(api, "/-/log?after=2") as stream:
            found = await stream.until(2)
            assert [(each.last, each.event) for each in found] == [("", "interaction"), ("3", "EntityCreated:1")]
            await api.client.put("/dirs/d1", json={})
            found = (await stream.until(5))[2:]
            assert [(each.last, each.event) for each in found] == [
                ("3", "interaction"),
                ("4", "EntityUpdated:1"),
                ("5", "EntityCreated:1"),
            ]
            assert json.loads(found[0].data)["last"] == 5

    api.runner.run(follow())


def test_an_idle_stream_shows_that_it_lives(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # a heartbeat carries the position, so that a reader with few matching events does not resume from the start
    monkeypatch.setattr(feeds, "HEARTBEAT_SECONDS", 0.02)

    async def follow() -> str:
        async with reading(api, "/-/events?subject=/dirs/none") as stream:
            await api.client.put("/dirs/d1", json={})
            async with asyncio.timeout(60):
                while ": \nid: 5\n\n" not in stream.text:
                    await asyncio.sleep(0.01)
        return stream.text

    assert "data:" not in api.runner.run(follow())


def test_a_reader_that_leaves_is_forgotten(api: Api) -> None:
    # no task waits for a client that has disconnected, and the log is not polled for it
    following: LogHeadWatcher = api.app.state.stop_following.__self__

    async def follow() -> None:
        async with reading(api, "/-/events") as stream:
            async with asyncio.timeout(60):
                while not following.waiting:
                    await asyncio.sleep(0.01)
            assert not stream.left.is_set()
        assert following.waiting == 0

    api.runner.run(follow())


def test_a_reader_of_everything_that_leaves_ends_the_work(api: Api) -> None:
    # lines that no client reads are not produced
    api.done("POST", "/dirs/d/notes", {f"n{number}": {"description": "x" * 2000} for number in range(300)})

    async def leave_early() -> int:
        async with reading(api, "/-/log", accept="application/x-ndjson") as stream:
            async with asyncio.timeout(60):
                while not stream.text:
                    await asyncio.sleep(0)
            stream.left.set()
        return len(stream.text)

    whole = len(api.done("GET", "/-/log", accept="application/x-ndjson").text)
    assert api.runner.run(leave_early()) < whole


def test_a_search_ends_with_its_reader(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # the search for a page stops when its client disconnects; each step of the search is short
    steps: list[int] = []
    piece = FeedReader.next_piece

    def noted(self: FeedReader, end: int) -> bytes:
        steps.append(self.position)
        return piece(self, end)

    monkeypatch.setattr("annals.api.feeds.reader.MAX_PIECE_POSITIONS", 1)
    monkeypatch.setattr(FeedReader, "next_piece", noted)
    for number in range(9):
        api.done("PUT", "/dirs/d", {"name": f"n{number}"})

    async def look(leaves: bool) -> int:
        async with reading(api, "/-/events?subject=/dirs/none", accept="*/*") as stream:
            if leaves:
                stream.left.set()
            async with asyncio.timeout(60):
                while not leaves and not stream.text:
                    await asyncio.sleep(0)
        return stream.status

    assert api.runner.run(look(leaves=False)) == 200
    assert len(steps) > 9
    steps.clear()
    assert api.runner.run(look(leaves=True)) == 0
    assert len(steps) < 9


def test_a_stream_ends_with_the_server(api: Api) -> None:
    # a server that stops ends its streams at once, so that readers can connect to a new one
    async def follow() -> None:
        async with reading(api, "/-/events") as stream:
            await api.client.put("/dirs/d1", json={})
            await stream.until(2)
            waiting = asyncio.create_task(api.client.get("/-/events?after=5&wait=30", timeout=40))
            await asyncio.sleep(0.05)
            api.app.state.stop_following()
            assert (await asyncio.wait_for(waiting, 20)).json() == []
            stream.left = asyncio.Event()  # the reader does not disconnect; the server stops

    api.runner.run(follow())


@pytest.mark.parametrize("error", [OSError(), RuntimeError()])
def test_a_look_that_fails_is_not_the_last_one(error: Exception) -> None:
    looks: list[object] = []

    async def head() -> int:
        looks.append(None)
        if len(looks) == 1:
            raise error
        return 1

    async def wait() -> bool:
        following = LogHeadWatcher()
        following.start(head)
        return await following.wait_beyond(0, 100 * POLL_SECONDS, asyncio.get_running_loop().create_future())

    assert asyncio.run(wait())


def test_waiting_readers_share_one_query() -> None:
    # commits of other processes are found by polling, once for all readers, and only while a reader waits
    looks: list[int] = []

    async def head() -> int:
        looks.append(0)
        return len(looks) // 4

    async def wait() -> None:
        following = LogHeadWatcher()
        following.start(head)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        found = await asyncio.gather(*(following.wait_beyond(0, 20 * POLL_SECONDS, gone) for _ in range(30)))
        assert found == [True] * 30
        seen = len(looks)
        assert seen == 4
        await asyncio.sleep(3 * POLL_SECONDS)
        assert len(looks) == seen
        assert not await following.wait_beyond(1, 0.01, gone)
        gone.set_result(None)
        assert not await following.wait_beyond(0, 5, gone)

    asyncio.run(wait())


def test_commits_in_close_succession_are_sent_together() -> None:
    # frequent commits do not each wake a reader; the first commit after a pause wakes it at once
    committed: list[int] = []

    async def head() -> int:
        return len(committed)

    async def wait() -> None:
        following, wakeups = LogHeadWatcher(), 0
        following.start(head)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def write() -> None:
            for number in range(100):
                committed.append(number)
                following.committed(1, 0, 0.0)
                await asyncio.sleep(MIN_POLL_SECONDS / 10)

        writing, position, began = asyncio.create_task(write()), 0, time.monotonic()
        while position < 100:
            assert await following.wait_beyond(position, 5, gone)
            wakeups, position = wakeups + 1, len(committed)
        await writing
        assert wakeups <= (time.monotonic() - began) / MIN_POLL_SECONDS + 2
        await asyncio.sleep(MIN_POLL_SECONDS)
        waiting = asyncio.create_task(following.wait_beyond(100, 5, gone))
        await asyncio.sleep(2 * MIN_POLL_SECONDS)  # the wait itself begins with a check, late on a busy machine
        committed.append(100)
        following.committed(1, 0, 0.0)
        for _ in range(5):  # iterations of the event loop, which take no time
            await asyncio.sleep(0)
        assert waiting.done()

    asyncio.run(wait())


def test_many_followers_are_notified_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # EV-79: all of them get the same lines, and the log is read about as often as for one of them
    looks: list[int] = []
    groups = LogFeedSource.groups

    def counted(self: LogFeedSource, after: int, end: int) -> Iterator[PositionLines]:
        looks.append(after)
        return groups(self, after, end)

    monkeypatch.setattr(LogFeedSource, "groups", counted)

    async def follow() -> None:
        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(reading(api, "/-/log")) for _ in range(10)]
            for number in range(20):
                await api.client.put(f"/dirs/d{number}", json={})
            found = [await stream.until(64) for stream in streams]
            assert all(each == found[0] for each in found)
            assert found[0][-1].last == "43"

    api.runner.run(follow())
    assert len(looks) < 70


def test_readers_with_documents_do_not_affect_others(store_url: str) -> None:
    # EV-79: readers that follow the log share lines only with readers that request the same
    create(store_url)

    async def follow(api: Api) -> None:
        async with reading(api, "/-/log?after=3") as plain, reading(api, "/-/log?after=3&documents") as more:
            await api.client.put("/dirs/d/files/f", content=b"doc")
            kinds = [each.event for each in await more.until(6)]
            assert "document" in kinds
            assert "document" not in [each.event for each in await plain.until(5)]

    with serving(store_url) as api:
        api.runner.run(follow(api))


def test_readers_of_equal_events_share_them(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # EV-79: many equal readers cost about as much as one; a reader with another filter or role gets its own events
    create(store_url)
    looks: list[int] = []
    groups = EventFeedSource.groups

    def counted(self: EventFeedSource, after: int, end: int) -> Iterator[PositionLines]:
        looks.append(after)
        return groups(self, after, end)

    monkeypatch.setattr(EventFeedSource, "groups", counted)
    tokens = {"read": {"name": "r", "role": "writer"}, "part": {"name": "p", "groups": {"/dirs/d1": "reader"}}}

    async def follow(api: Api) -> None:
        read, part = ({"authorization": f"Bearer {token}"} for token in tokens)
        async with AsyncExitStack() as stack:

            async def opened(path: str, headers: dict[str, str]) -> Stream:
                return await stack.enter_async_context(reading(api, path, **headers))

            same = [await opened("/-/events?subject=/&after=3", read) for _ in range(10)]
            below = await opened("/-/events?subject=/dirs/d2&after=3", read)
            limited = await opened("/-/events?subject=/&after=3", part)
            for number in range(20):
                await api.client.put(f"/dirs/d{number}", json={}, headers=read)
            found = [await stream.until(40) for stream in same]
            assert all(each == found[0] for each in found)
            assert event_summaries(await below.until(1)) == [("9", "group.created", "/dirs/d2")]
            assert event_summaries(await limited.until(1)) == [("7", "group.created", "/dirs/d1")]

    with serving(store_url, tokens=json.dumps(tokens)) as api:
        api.runner.run(follow(api))
    assert len(looks) < 150  # 12 readers of 20 commits each would be 240
