"""The connections of readers: how many there are, and when they are replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event, Semaphore
from typing import Any

import pytest
from sqlalchemy import make_url

from annals.projections.database import connection_pool
from annals.projections.database.connection_pool import KEPT
from annals.projections.entities.view_pool import SERVER_LIMITS, ViewPool
from tests.support.polling import until
from tests.support.registries.in_process import create

COUNT = "SELECT count(*)::bigint FROM pg_stat_activity WHERE application_name = 'annals-test-pool'"


def test_connections_are_limited_and_returned(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three servers at the same time fit into PostgreSQL's hundred connections, and a burst of reads ends."""
    monkeypatch.setattr(connection_pool, "SURPLUS_SECONDS", 0.5)
    create(postgres_url)
    url = make_url(postgres_url).update_query_dict({"application_name": "annals-test-pool"})
    with closing(ViewPool(url.render_as_string(hide_password=False))) as readers:

        def read(_: int) -> int:
            """Each reader of a snapshot needs a statement of its own, too."""
            with readers.view() as view:
                row: Any = view.database.one("SELECT pg_sleep(0.05)::text")
                assert row == ("",)
                return count(readers)

        with ThreadPoolExecutor(50) as threads:
            most = max(threads.map(read, range(200)))
        assert SERVER_LIMITS.statements < most <= SERVER_LIMITS.snapshots + SERVER_LIMITS.statements
        assert until(lambda: (left := count(readers)) <= 2 * KEPT and left)


@contextmanager
def connections_in_use(readers: ViewPool) -> Iterator[ThreadPoolExecutor]:
    """As many quick views as the server has connections for are reading during the block; yields more threads."""
    begun, release = Semaphore(0), Event()

    def read(_: object) -> None:
        begun.release()
        release.wait()

    number = SERVER_LIMITS.statements
    with ThreadPoolExecutor(2 * number) as threads:
        for _ in range(number):
            threads.submit(readers._statements.run, read)
        try:
            assert all(begun.acquire(timeout=60) for _ in range(number))
            yield threads
        finally:
            release.set()


def test_reads_of_a_file_never_stop_the_event_loop(sqlite_url: str) -> None:
    """An event loop reads from a file directly, so threads that read for long must leave it a connection."""
    create(sqlite_url)
    with closing(ViewPool(sqlite_url)) as readers, connections_in_use(readers) as threads:
        read = readers.read(readers.quick_view().position)
        assert threads.submit(asyncio.run, read).result(60) > 0


def test_what_each_request_needs_waits_for_no_other_read(postgres_url: str) -> None:
    """ACC-47, ACC-65: keys and grants are read for each request, however many reads wait for a lock."""
    create(postgres_url)
    with closing(ViewPool(postgres_url)) as readers, connections_in_use(readers) as threads:
        assert threads.submit(readers.reserved_view().position).result(60) > 0


def test_reads_that_wait_leave_the_threads_of_the_event_loop(postgres_url: str) -> None:
    create(postgres_url)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(2))
        waiting = [loop.create_task(readers.read(readers.quick_view().position)) for _ in range(4)]
        await asyncio.sleep(0.1)
        async with asyncio.timeout(60):
            await asyncio.to_thread(lambda: None)
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()

    with closing(ViewPool(postgres_url)) as readers, connections_in_use(readers):
        asyncio.run(run())


def test_connections_in_use_are_closed_after_the_pool(postgres_url: str) -> None:
    create(postgres_url)
    with closing(ViewPool(postgres_url)) as others:
        readers = ViewPool(postgres_url)
        with readers.view() as view:
            row: Any = view.database.one("SELECT pg_backend_pid()")
            readers.close()
        until(lambda: others.quick_view().database.one(f"SELECT 1 FROM pg_stat_activity WHERE pid = {row[0]}") is None)


def count(readers: ViewPool) -> int:
    row: Any = readers.quick_view().database.one(COUNT)
    return int(row[0])


@pytest.mark.parametrize("kind", ["snapshot", "statement"])
def test_a_read_is_repeated_once(postgres_url: str, kind: str) -> None:
    """A connection that was closed meanwhile is replaced with all others; errors of the query itself are reported."""
    create(postgres_url)
    with closing(ViewPool(postgres_url)) as readers, closing(ViewPool(postgres_url)) as others:
        reads: dict[str, Callable[[], int]] = {"statement": lambda: pid(readers), "snapshot": lambda: in_view(readers)}
        first = reads[kind]()
        assert reads[kind]() == first
        terminate(others, first)
        assert reads[kind]() != first
        with pytest.raises(Exception, match="division by zero"):
            readers.quick_view().database.one("SELECT 1 / 0")


def pid(readers: ViewPool) -> int:
    row: Any = readers.quick_view().database.one("SELECT pg_backend_pid()")
    return int(row[0])


def in_view(readers: ViewPool) -> int:
    with readers.view() as view:
        row: Any = view.database.one("SELECT pg_backend_pid()")
    return int(row[0])


def terminate(readers: ViewPool, backend: int) -> None:
    readers.quick_view().database.one("SELECT pg_terminate_backend(?::bigint::int, 60000)", (backend,))
