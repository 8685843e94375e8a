"""Responses that are produced while they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from time import monotonic
from typing import Any

import pytest

from annals.api.http.streaming import MAX_WAITING_CHUNKS, ClientStalled, StreamingPool, StreamStopped
from tests.support.registries.in_process import Api, create, serving


def test_a_job_stays_a_few_chunks_ahead() -> None:
    # memory stays flat: a slow client pauses the job, and a client that disconnects ends it
    made: list[int] = []
    ended: list[bool] = []

    def job() -> Generator[Any, None, None]:
        try:
            for number in range(1000):
                made.append(number)
                yield number
        finally:
            ended.append(True)

    async def slow_client() -> None:
        streams = StreamingPool(threads=4)
        head, rest = await streams.start(job)
        following: Any = await anext(rest)
        assert (head, following) == (0, 1)
        await asyncio.sleep(0.05)
        assert len(made) <= 2 + MAX_WAITING_CHUNKS + 1
        await rest.aclose()
        await asyncio.to_thread(streams.close)

    asyncio.run(slow_client())
    assert ended == [True]
    assert len(made) <= 2 + MAX_WAITING_CHUNKS + 2


def test_a_client_that_takes_nothing_frees_its_thread() -> None:
    # other clients do not wait for ever for a thread; the response to a client that reads nothing breaks off
    async def clients() -> None:
        streams = StreamingPool(threads=1, stall_seconds=0.05)
        _, stalled = await streams.start(lambda: (number for number in range(1000)))
        async with asyncio.timeout(60):
            head, _ = await streams.start(lambda: (letter for letter in "ab"))
        assert head == "a"
        with pytest.raises(ClientStalled):
            _ = [item async for item in stalled]
        await asyncio.to_thread(streams.close)

    asyncio.run(clients())


def test_a_pool_that_closes_does_not_wait_for_clients() -> None:
    # a process that stops does not wait for a client that reads nothing, and does not end its response as if complete
    async def stalled_client() -> None:
        streams = StreamingPool(threads=4)
        _, rest = await streams.start(lambda: (number for number in range(1000)))
        started_at = monotonic()
        streams.close()
        assert monotonic() - started_at < 15, "less than STALL_SECONDS"
        with pytest.raises(StreamStopped):
            _ = [item async for item in rest]

    asyncio.run(stalled_client())


def test_a_job_that_fails_when_it_is_stopped() -> None:
    # the connection of a job may be broken when it is closed; its response must end all the same
    def job() -> Generator[Any, None, None]:
        try:
            yield from range(1000)
        finally:
            raise ConnectionError("the connection is gone")

    async def stalled_client() -> None:
        streams = StreamingPool(threads=1, stall_seconds=0.05)
        _, rest = await streams.start(job)
        await asyncio.sleep(0.3)
        async with asyncio.timeout(60):
            with pytest.raises(ConnectionError):
                _ = [item async for item in rest]
        await asyncio.to_thread(streams.close)

    asyncio.run(stalled_client())


@pytest.mark.parametrize("fails_at", [0, 3])
def test_a_job_that_fails(fails_at: int) -> None:
    # ENT-7: a failure before the head is an error response; after it the response breaks off, so it is not complete
    def job() -> Generator[Any, None, None]:
        for number in range(5):
            if number == fails_at:
                raise RuntimeError
            yield number

    async def client() -> list[Any]:
        streams = StreamingPool(threads=4)
        head, rest = await streams.start(job)
        return [head, *[item async for item in rest]]

    with pytest.raises(RuntimeError):
        asyncio.run(client())


def test_a_collection_is_one_moment(store_url: str) -> None:
    # SER-15: writes during a response do not change the collection that it sends; on both databases
    create(store_url)
    with serving(store_url) as api:
        api.done("POST", "/dirs/d/notes", {f"n{number:04}": {"description": "x" * 4000} for number in range(1500)})

        async def read() -> list[bytes]:
            pieces: list[bytes] = []

            async def send(message: Any) -> None:
                pieces.append(message.get("body", b""))
                if len(pieces) == 2:
                    await api.client.delete("/dirs/d/notes")

            await api.app(scope("/dirs/d/notes"), receive, send)
            return pieces

        pieces = api.runner.run(read())
        assert len(pieces) > 5
        assert b"".join(pieces).count(b'"noteid"') == 1500
        assert api.get("/dirs/d/notes") == {}


def test_a_client_that_goes_away_ends_its_answer(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # sending to a client that has disconnected does not fail, so the server has to notice the disconnect itself
    made: list[int] = []

    def endless(*_: Any) -> Generator[bytes, None, None]:
        while len(made) < 10_000:
            made.append(1)
            yield b"x" * 100

    async def left() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("annals.api.xregistry.reading.encode_chunks", endless)
    api.runner.run(api.app(scope("/dirs"), left, send))
    assert len(made) < 100


def test_a_failure_half_way_ends_the_connection(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # ENT-7: no response is cut short silently: the last chunk is never sent
    api.done("POST", "/dirs/d/notes", {f"n{number:03}": {"description": "x" * 2000} for number in range(200)})
    messages: list[Any] = []
    stored = api.runner.run(_first_chunk(api))

    async def send(message: Any) -> None:
        messages.append(message)

    def broken(*_: Any) -> Generator[bytes, None, None]:
        yield from (stored, stored)
        raise RuntimeError

    monkeypatch.setattr("annals.api.xregistry.reading.encode_chunks", broken)
    monkeypatch.setattr("annals.api.xregistry.reading.CHUNK_SIZE", 1)  # a smaller piece would be the last
    with pytest.raises(RuntimeError):
        api.runner.run(api.app(scope("/dirs/d/notes"), receive, send))
    assert [message.get("more_body") for message in messages] == [None, True, True, True]


def test_a_failure_at_the_start_is_a_problem_response(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # ENT-7: before anything is sent, a failure is an error response
    def broken(*_: Any) -> Generator[bytes, None, None]:
        raise RuntimeError

    monkeypatch.setattr("annals.api.xregistry.reading.encode_chunks", broken)
    assert api.send("GET", "/dirs").status_code == 500


def test_a_short_answer_has_a_length(api: Api) -> None:
    # a response that fits into one chunk is not streamed
    assert api.done("GET", "/dirs").headers["content-length"] == "2"


async def _first_chunk(api: Api) -> bytes:
    answer = await api.client.get("/dirs/d/notes")
    return answer.content[:100]


async def receive() -> dict[str, Any]:
    """Waits for ever: a GET has no body, and the client stays."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


def scope(path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"h")],
        "scheme": "http",
        "server": ("h", 80),
    }
