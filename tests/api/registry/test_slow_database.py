"""Requests next to a PostgreSQL server that makes some of them wait, or that has closed connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psycopg
import pytest
from sqlalchemy import make_url

from tests.api.feeds.streams import reading
from tests.support.registries.in_process import Api, create, serving
from tests.support.stores import database_of


@contextmanager
def locked(url: str, table: str, seconds: float = 50) -> Iterator[Event]:
    """Locks a table during the block, at most so long; yields what is set once the lock has ended.

    A thread ends it, because a blocked event loop could not.
    """
    ended, finish = Event(), Event()
    server = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(server) as connection:
        connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())

        def unlock() -> None:
            finish.wait(seconds)
            connection.rollback()
            ended.set()

        thread = Thread(target=unlock)
        thread.start()
        try:
            yield ended
        finally:
            finish.set()
            thread.join()


# is_first: whether the request also connects and prepares its statement
@pytest.mark.parametrize(
    ("table", "path", "status", "is_first"),
    [
        ("entity", "/dirs/d", 200, True),
        ("entity", "/dirs/d", 200, False),
        ("entity", "/dirs/none", 404, False),
        ("projection", "/dirs/d/files/f", 200, True),
        ("projection", "/dirs/d?waitfor=1", 200, True),
    ],
)
def test_a_lock_stops_only_the_requests_that_need_the_table(
    postgres_url: str, table: str, path: str, status: int, is_first: bool
) -> None:
    """README.md: `/-/livez` says that the process is alive; a VACUUM FULL must not look like its end."""
    create(postgres_url)
    with serving(postgres_url) as api:
        api.done("PUT", "/dirs/d/files/f", b"one")
        if not is_first:
            assert api.send("GET", path).status_code == status

        async def run() -> None:
            with locked(postgres_url, table) as lock_ended:
                waiting = asyncio.create_task(api.client.get(path, timeout=60))
                await asyncio.sleep(0.2)  # time for its statements to reach the lock
                await assert_alive(api)
                assert not (lock_ended.is_set() or waiting.done())
            assert (await waiting).status_code == status

        api.runner.run(run())


async def assert_alive(api: Api) -> None:
    for path in ("/-/livez", "/livez", "/-/log/head"):
        assert (await api.client.get(path, timeout=60)).status_code == 200


@pytest.mark.parametrize("path", ["/dirs/none", "/dirs/d?asof=3", "/dirs?sort=name"])
def test_many_requests_that_wait_for_a_lock_stop_nothing_else(postgres_url: str, path: str) -> None:
    """README.md: the same with more requests than the process has connections."""
    create(postgres_url)
    with serving(postgres_url) as api:
        api.done("PUT", "/dirs/d/files/f", b"one")

        async def run() -> None:
            with locked(postgres_url, "entity") as lock_ended:
                waiting = [asyncio.create_task(api.client.get(path, timeout=60)) for _ in range(40)]
                await asyncio.sleep(0.5)
                await assert_alive(api)
                assert (await api.client.put("/-/livez")).status_code == 405
                await asyncio.to_thread(lambda: None)
                assert not lock_ended.is_set()
            assert {answer.status_code for answer in await asyncio.gather(*waiting)} < {200, 404}

        api.runner.run(run())


def test_readers_of_a_feed_that_wait_for_a_lock_stop_nothing_else(postgres_url: str) -> None:
    """EV-79: an open reader waits for the next commit; the same server answers others meanwhile."""
    create(postgres_url)
    with serving(postgres_url) as api:

        async def run() -> None:
            async with reading(api, "/-/events") as stream:
                await api.client.put("/dirs/c", json={})
                await stream.until(1)
                with locked(postgres_url, "interaction") as lock_ended:
                    for _ in range(5):  # the log is polled meanwhile
                        await asyncio.sleep(0.1)
                        assert (await api.client.get("/-/livez")).status_code == 200
                    assert not lock_ended.is_set()
                await api.client.put("/dirs/d", json={})
                assert [json.loads(event.data)["subject"] for event in await stream.until(4)] == [
                    "/",
                    "/dirs/c",
                    "/",
                    "/dirs/d",
                ]

        api.runner.run(run())


PATHS = ("/", "/dirs/d", "/dirs/d/files", "/dirs/d/files/f", "/dirs?sort=name", "/export", "/dirs/d?asof=7")
FEEDS = ("/-/events", "/-/log/head", "/-/history/dirs/d", "/subscriptions")


def test_connections_that_the_server_has_closed_cost_no_request(postgres_server: str) -> None:
    """HTTP-3: 503 says that the store cannot be reached; one that closes idle connections can be."""
    with database_of(postgres_server) as url:
        create(url)
        with serving(url) as api:
            api.done("PUT", "/dirs/d/files/f", b"one")
            for path in (*PATHS, *FEEDS) * 2:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                answer = api.send("GET", path)
                assert answer.status_code == 200, (path, answer.text)
