"""Look-ups that share a statement: each gets its own row, document or error."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from annals.api.registry.entity_lookups import EntityLookups
from annals.projections.entities.found_entities import FoundEntity
from annals.projections.entities.sent_lookups import SentLookups
from annals.projections.entities.view_pool import ViewPool
from tests.support.registries.in_process import create, serving


def test_each_gets_its_own(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(store_url)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/d1/files/f1", b"one")
        api.done("PUT", "/dirs/d1/files/f2", b"two")
        api.done("PUT", "/dirs/d1/files/f2/versions/2$details", {})
    together: list[int] = []

    def counted(lookups: SentLookups, xids: Iterable[str]) -> None:
        names = list(xids)
        together.append(len(names))
        send(lookups, names)

    send = SentLookups.send
    monkeypatch.setattr(SentLookups, "send", counted)
    requested = [
        ("/dirs/d1/files/f1/versions/1", True),
        ("/dirs/d1/files/f2/versions/1", True),
        ("/dirs/d1/files/f2/versions/2", True),
        ("/dirs/d1/files/none", True),
        ("/dirs/d1", False),
        ("/dirs/D1", False),
        ("/dirs/d1", False),
    ]

    async def find_all(more: list[str]) -> list[Any]:
        with closing(EntityLookups(readers)) as lookups:
            searches = [lookups.find(*each) for each in [*requested, *((xid, False) for xid in more)]]
            return await asyncio.gather(*searches, return_exceptions=True)

    with closing(ViewPool(store_url)) as readers:
        view = readers.quick_view()
        expected = [view.look_up(xid, with_document) for xid, with_document in requested]
        assert [found.content for found in expected[:4]] == [b"one", b"two", b"", b""]
        assert [found.row and found.row.xid for found in expected[3:]] == [None, "/dirs/d1", None, "/dirs/d1"]
        assert asyncio.run(find_all([])) == expected
        assert sorted(together) == ([3, 4] if readers.is_server else [])
        *found, broken = asyncio.run(find_all(["/dirs/\0"]))  # PostgreSQL does not accept this text
        assert found == expected
        assert isinstance(broken, Exception if readers.is_server else FoundEntity)


def test_a_cancelled_one_does_not_disturb_others(store_url: str) -> None:
    create(store_url)

    async def run() -> FoundEntity:
        with closing(EntityLookups(readers)) as lookups:
            first = asyncio.create_task(lookups.find("/", False))
            second = asyncio.create_task(lookups.find("/", False))
            await asyncio.sleep(0)
            first.cancel()
            return await second

    with closing(ViewPool(store_url)) as readers:
        row = asyncio.run(run()).row
        assert row is not None and row.xid == "/"


def test_cancelled_ones_need_no_statement(postgres_url: str) -> None:
    create(postgres_url)

    async def run() -> set[int]:
        pids: set[int] = set()
        with closing(EntityLookups(readers)) as lookups:
            for _ in range(3):
                await asyncio.gather(*(lookups.find("/", False) for _ in range(2)))
                cancelled = [asyncio.create_task(lookups.find("/", False)) for _ in range(2)]
                await asyncio.sleep(0)
                for task in cancelled:
                    task.cancel()
                await asyncio.wait(cancelled)
                await asyncio.sleep(0.05)  # time for a response of the database
                if (used := lookups._queues[False]._lookups) is not None:
                    pids.add(used._connection.info.backend_pid)
        return pids

    with closing(ViewPool(postgres_url)) as readers:
        assert len(asyncio.run(run())) == 1


def test_many_are_sent_to_the_end(postgres_url: str) -> None:
    create(postgres_url)
    names = [f"/dirs/{number:0100}" for number in range(10_000)]
    with closing(SentLookups(postgres_url, False)) as lookups:
        with socket.socket(fileno=os.dup(lookups.fileno())) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        lookups.send(names)
        deadline = time.monotonic() + 20
        while (found := lookups.receive()) is None and select.select([lookups], [], [], deadline - time.monotonic())[0]:
            pass
    assert found is not None and len(found) == len(names)


def test_lookups_during_a_statement_share_the_next_one(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(postgres_url)
    together: list[list[str]] = []

    def noted(lookups: SentLookups, xids: Iterable[str]) -> None:
        together.append(list(xids))
        send(lookups, together[-1])

    send = SentLookups.send
    monkeypatch.setattr(SentLookups, "send", noted)

    async def run() -> list[FoundEntity]:
        with closing(EntityLookups(readers)) as lookups:
            found = [await lookups.find("/", False)]
            first = [asyncio.create_task(lookups.find("/", False)) for _ in range(2)]
            while len(together) < 2:
                await asyncio.sleep(0)
            others = [asyncio.create_task(lookups.find(xid, False)) for xid in ("/model", "/none", "/", '/"\\,{}')]
            found += await asyncio.gather(*first, *others)
            found.append(await lookups.find("/", False))
            found.append(await lookups.find("/", False))
            return found

    with closing(ViewPool(postgres_url)) as readers:
        found = [lookup.row and lookup.row.xid for lookup in asyncio.run(run())]
    assert found == ["/", "/", "/", "/model", None, "/", None, "/", "/"]
    assert together == [["/"], ["/", "/"], ["/model", "/none", "/", '/"\\,{}'], ["/"], ["/"]]


def test_a_lost_connection_is_replaced(postgres_url: str) -> None:
    create(postgres_url)

    async def run() -> list[int]:
        pids: list[int] = []
        with closing(EntityLookups(readers)) as lookups:
            for _ in range(4):
                found = await asyncio.gather(*(lookups.find("/", False) for _ in range(2)))
                assert all(each.row for each in found)
                if (used := lookups._queues[False]._lookups) is not None:
                    pids.append(used._connection.info.backend_pid)
                    readers.quick_view()._db.one("SELECT pg_terminate_backend(?::bigint::int, 5000)", (pids[-1],))
        return pids

    with closing(ViewPool(postgres_url)) as readers:
        pids = asyncio.run(run())
    assert len(set(pids)) == len(pids) >= 2  # look-ups in between may have been answered by another connection


async def cancel_while_connecting(lookups: EntityLookups) -> asyncio.Task[None]:
    """Cancels a look-up while its connection is being opened; returns the task that opens it."""
    queue = lookups._queues[False]
    before, waiting = queue._connect_task, queue.add("/")
    while (connecting := queue._connect_task) is None or connecting is before:
        await asyncio.sleep(0)
    waiting.cancel()
    return connecting


def end_connection(readers: ViewPool, lookups: EntityLookups) -> None:
    used = lookups._queues[False]._lookups
    assert used is not None
    pid = used._connection.info.backend_pid
    readers.quick_view()._db.one("SELECT pg_terminate_backend(?::bigint::int, 5000)", (pid,))


def test_a_cancelled_one_takes_no_second_try_from_others(postgres_url: str) -> None:
    create(postgres_url)

    async def run() -> None:
        with closing(EntityLookups(readers)) as lookups:
            await lookups.find("/", False)
            end_connection(readers, lookups)
            await (await cancel_while_connecting(lookups))
            end_connection(readers, lookups)
            assert (await lookups.find("/", False)).row

    with closing(ViewPool(postgres_url)) as readers:
        asyncio.run(run())


def test_a_connection_that_is_being_opened_is_closed_too(postgres_url: str) -> None:
    create(postgres_url)

    async def run() -> None:
        lookups = EntityLookups(readers)
        connecting = await cancel_while_connecting(lookups)
        lookups.close()
        await connecting
        assert lookups._queues[False]._lookups is None

    with closing(ViewPool(postgres_url)) as readers:
        asyncio.run(run())
