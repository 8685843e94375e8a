"""Following the subscriptions while commits go on, and after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import pytest

from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange
from annals.projections.subscriptions.workers.subscription_follower import SubscriptionFollower
from annals.projections.subscriptions.workers.threads import ReaderThread
from tests.support.delivery_rig import Rig

T = TypeVar("T")


@pytest.fixture
def rig(sqlite_url: str) -> Iterator[Rig]:
    rig = Rig(sqlite_url)
    yield rig
    rig.close()


class BusyReader(ReaderThread):
    """Makes a change during each of the first reads. reads: how many there were."""

    def __init__(self, url: str, change: Callable[[], object]) -> None:
        super().__init__("test", url)
        self.reads = 0
        self._change = change

    async def read(self, work: Callable[..., T], *arguments: object) -> T:
        self.reads += 1
        await asyncio.sleep(0)  # other tasks go on, as while a server is read
        result = await super().read(work, *arguments)
        if self.reads <= 5:
            self._change()
        return result


def test_commits_meanwhile_are_not_waited_for(rig: Rig) -> None:
    # SUB-833: every send waits until what was answered before it is applied, and for nothing later; one reads for all
    def subscribe_another() -> None:
        rig.subscribe(f"meanwhile{reader.reads}")
        follower.committed()

    async def follow() -> None:
        await follower.load()
        rig.subscribe("before")
        follower.committed()
        await asyncio.gather(*(follower.catch_up() for _ in range(3)))
        assert (reader.reads, set(follower.last_changes)) == (1, {"before"})
        await follower.catch_up()
        assert (reader.reads, set(follower.last_changes)) == (2, {"before", "meanwhile1"})

    with closing(BusyReader(rig.url, subscribe_another)) as reader:
        follower = SubscriptionFollower(reader, lambda change: None)
        asyncio.run(follow())


def test_a_change_that_could_not_be_applied_is_applied_later(rig: Rig) -> None:
    # SUB-833: a failure in between skips no change
    applied: list[str] = []
    failures = [RuntimeError("a failure")]

    def apply(change: SubscriptionChange) -> None:
        if change.id == "b" and failures:
            raise failures.pop()
        applied.append(change.id)

    async def follow() -> None:
        await follower.load()
        for id in ("a", "b", "c"):
            rig.subscribe(id)
        with pytest.raises(RuntimeError):
            await follower.follow()
        await follower.follow()
        await follower.follow()

    with closing(ReaderThread("test", rig.url)) as reader:
        follower = SubscriptionFollower(reader, apply)
        asyncio.run(follow())
    assert applied == ["a", "a", "b", "c"]
    assert set(follower.last_changes) == {"a", "b", "c"}
