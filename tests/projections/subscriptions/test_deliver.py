"""Deliveries over a real store: what arrives, in which order, and what survives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.projections.subscriptions.rig import Rig, until


@pytest.fixture
def rig(store_url: str) -> Iterator[Rig]:
    """A registry with an empty log, on each database in turn."""
    rig = Rig(store_url)
    yield rig
    rig.close()


def test_events_arrive_in_order(rig: Rig) -> None:
    # SUB-113, 803, 804: from the event after the creation on, in log order, each with its place in the log
    async def deliver() -> None:
        rig.groups("before")
        rig.subscribe()
        async with rig.delivering():
            last = rig.groups("a", "b", "c")
            await until(lambda: len(rig.receiver.arrived["s"]) == 3)
            await until(lambda: rig.status()["position"] == last)

    asyncio.run(deliver())
    assert rig.receiver.subjects() == ["/dirs/a", "/dirs/b", "/dirs/c"]
    assert rig.receiver.sequences() == [f"{position:020}.00" for position in (3, 4, 5)]
    assert rig.status()["lag"] == 0
