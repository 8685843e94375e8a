"""Requests of other processes to the deliverer."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

import pytest

from annals.projections.database.state_database import StateDatabase, create_tables
from annals.projections.subscriptions.state import tables
from annals.projections.subscriptions.workers import housekeeping
from annals.projections.subscriptions.workers.housekeeping import Housekeeping
from annals.projections.subscriptions.workers.threads import WorkerThread
from tests.support.registries.in_process import create


def test_a_request_during_the_work_is_handled_at_once(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-714: a consent that comes while others are read does not wait for the next interval
    monkeypatch.setattr(housekeeping, "_INTERVAL_SECONDS", 60.0)
    create(sqlite_url)
    create_tables(sqlite_url, tables.METADATA)

    async def save(workers: Sequence[Any]) -> Collection[str]:
        return []

    async def work() -> None:
        loop, thread = asyncio.get_running_loop(), WorkerThread("test")
        with closing(thread), closing(StateDatabase(sqlite_url)) as store:
            keeper = Housekeeping(thread, store, {}, save, lambda: 0.0)
            read_requests = keeper._read_requests

            def read_while_another_comes(ids: Sequence[str]) -> Any:
                found = read_requests(ids)
                loop.call_soon_threadsafe(keeper.run_soon)
                return found

            monkeypatch.setattr(keeper, "_read_requests", read_while_another_comes)
            await asyncio.wait_for(keeper.run_once(), 10)

    asyncio.run(work())
