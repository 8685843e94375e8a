"""The connections of readers: how many there are, and when they are replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
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


def test_slow_reads_of_a_file_never_stop_the_event_loop(sqlite_url: str) -> None:
    """An event loop reads from a file directly, so threads that read for long must leave it a connection."""
    create(sqlite_url)
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT max(i) FROM n"
    with closing(ViewPool(sqlite_url)) as readers, ThreadPoolExecutor(6) as threads:
        slow = [threads.submit(readers.quick_view().database.one, rows) for _ in range(6)]
        until(lambda: all(each.running() for each in slow))
        asyncio.run(readers.read(readers.quick_view().position))
        assert not any(each.done() for each in slow)


def test_what_each_request_needs_waits_for_no_other_read(postgres_url: str) -> None:
    create(postgres_url)
    with closing(ViewPool(postgres_url)) as readers, ThreadPoolExecutor(20) as threads:
        slow = [threads.submit(readers.quick_view().database.one, "SELECT pg_sleep(2)::text") for _ in range(20)]
        until(lambda: all(each.running() for each in slow))
        assert readers.reserved_view().position() == readers.quick_view().position()
        assert not all(each.done() for each in slow)


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
    readers.quick_view().database.one("SELECT pg_terminate_backend(?::bigint::int, 5000)", (backend,))
