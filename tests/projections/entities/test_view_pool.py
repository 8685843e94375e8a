"""The connections of readers: how many there are, and when they are replaced."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import make_url

from annals.projections.database import connection_pool
from annals.projections.database.connection_pool import KEPT
from annals.projections.entities.view_pool import MAX_CONNECTIONS, ViewPool
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
        assert 4 < most <= MAX_CONNECTIONS
        assert until(lambda: (left := count(readers)) <= 2 * KEPT and left)


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
