"""The outcomes of the last attempts, and the number of attempts in each hour (UI-111)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest

from annals.domain.access.roles import can_read_everything
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome
from annals.projections.subscriptions.state.tables import ATTEMPT_SECONDS, ATTEMPT_SLOTS
from tests.support.delivery_rig import Rig, until

RETRY = Outcome(DeliveryResult.RETRY, "503", "busy, says the secret body")
REJECTED = Outcome(DeliveryResult.REJECTED, "400", "what is this")
HOUR = 3600


@pytest.fixture
def rig(store_url: str) -> Iterator[Rig]:
    rig = Rig(store_url)
    yield rig
    rig.close()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def attempts(
    rig: Rig, id: str = "s", before: int | None = None, limit: int = ATTEMPT_SLOTS + 1
) -> list[dict[str, Any]]:
    return [dict(attempt) for attempt in rig.deliveries.attempts(id, before, limit, can_read_everything)]


def counts(rig: Rig) -> list[dict[str, int]]:
    """The number of attempts by outcome, for each hour, the newest first."""
    return [
        {name: count for name, count in hour.items() if name != "time" and count} for hour in rig.deliveries.hours("s")
    ]


def test_an_attempt_says_what_became_of_it(rig: Rig) -> None:
    # UI-111: newest first, with the time of the next attempt, without the sink's message
    outcomes = [RETRY, DELIVERED, REJECTED]
    rig.receiver.answer = lambda id, events: outcomes.pop(0)

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: rig.status()["state"] == "retrying")
            rig.clock.move(5)
            await until(lambda: rig.receiver.subjects() == ["/dirs/a"])
            rig.groups("b")
            await until(lambda: rig.deadletters())

    run(deliver)
    rejected, delivered, retried = attempts(rig)
    assert [one["number"] for one in (retried, delivered, rejected)] == [1, 2, 3]
    assert [one["outcome"] for one in (retried, delivered, rejected)] == ["retry", "delivered", "rejected"]
    assert [one.get("code") for one in (retried, delivered, rejected)] == ["503", None, "400"]
    assert retried["subject"] == delivered["subject"] == "/dirs/a"
    assert retried["event"] == delivered["event"] == rig.receiver.arrived["s"][0].get_id()
    assert rejected["event"] == rig.deadletters()[0]["event"]["id"]
    assert retried["next"] > retried["time"]
    assert "next" not in delivered
    assert "next" not in rejected
    assert all(one["duration"] >= 0 for one in (retried, delivered, rejected))
    assert "secret" not in str(attempts(rig))
    assert counts(rig) == [{"delivered": 1, "retry": 1, "rejected": 1}]
    assert [one["number"] for one in attempts(rig, before=3, limit=1)] == [2]


def test_each_event_of_a_batch_has_its_attempts(rig: Rig) -> None:
    # UI-111: a rejected batch is sent again in halves
    bad = {"/dirs/b"}
    rig.receiver.answer = lambda id, events: (
        REJECTED if bad & {str(event.get_subject()) for event in events} else DELIVERED
    )

    async def deliver() -> None:
        rig.subscribe(contentmode="batched", maxbatchsize=2, maxbatchwait=10_000)
        async with rig.delivering():
            rig.record(("/dirs/a", {"n": 1}), ("/dirs/b", {"n": 1}))
            await until(lambda: rig.deadletters() and rig.receiver.subjects() == ["/dirs/a"])

    run(deliver)
    found = [(one["subject"], one["outcome"]) for one in attempts(rig)]
    assert sorted(found) == sorted(
        [("/dirs/a", "rejected"), ("/dirs/b", "rejected"), ("/dirs/a", "delivered"), ("/dirs/b", "rejected")]
    )


def test_only_the_last_attempts_are_kept(rig: Rig) -> None:
    # UI-111: a thousand of each subscription, for seven days; the hourly numbers include all
    more = 40

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.record_repeatedly("/dirs/a", ATTEMPT_SLOTS + more)
            await until(lambda: len(rig.receiver.arrived["s"]) == ATTEMPT_SLOTS + more, 60)

    run(deliver)
    numbers = [one["number"] for one in attempts(rig)]
    assert numbers == list(range(ATTEMPT_SLOTS + more, more, -1))
    assert counts(rig) == [{"delivered": ATTEMPT_SLOTS + more}]
    rig.clock.move(ATTEMPT_SECONDS + HOUR)
    assert attempts(rig) == []
    assert counts(rig) == []


def test_counts_go_on_after_a_restart_and_in_the_next_hour(rig: Rig) -> None:
    # UI-111: another process continues the numbers
    def has_arrived(number: int) -> bool:
        return len(rig.receiver.arrived["s"]) == number

    async def deliver() -> None:
        rig.subscribe()
        for group, number in (("a", 1), ("b", 2)):
            async with rig.delivering():
                rig.groups(group)
                await until(partial(has_arrived, number))
        rig.clock.move(HOUR)
        async with rig.delivering():
            rig.groups("c")
            await until(lambda: len(rig.receiver.arrived["s"]) == 3)

    run(deliver)
    assert [one["number"] for one in attempts(rig)] == [3, 2, 1]
    assert counts(rig) == [{"delivered": 1}, {"delivered": 2}]


def test_expired_and_deleted_ones_leave_the_tables(rig: Rig) -> None:
    # UI-111, SUB-504
    def rows() -> int:
        with rig.store.engine.connect() as connection:
            select = "SELECT (SELECT count(*) FROM delivery_attempt) + (SELECT count(*) FROM delivery_hour)"
            found: int = connection.exec_driver_sql(select).scalar_one()
        return found

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: len(attempts(rig)) == 1)
        rig.clock.move(ATTEMPT_SECONDS + HOUR)
        async with rig.delivering():
            await until(lambda: rows() == 0)
            rig.groups("b")
            await until(lambda: rows() == 2)
            rig.unsubscribe()
            await until(lambda: rows() == 0)

    run(deliver)
