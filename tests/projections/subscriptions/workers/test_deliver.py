"""Deliveries on a real store: what arrives, in which order, what is retried, and what survives a restart."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent

from annals.commands.store.damage import report_once
from annals.commands.store.database import sql
from annals.domain.access.roles import can_read_everything
from annals.projections.database import state_database
from annals.projections.database.drivers import Database
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome
from annals.projections.subscriptions.decisions.delivery_queue import MAX_READY_KEYS, MAX_RETRYING_KEYS
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.sequence import sequence_of
from annals.projections.subscriptions.state import delivery_queries, subscription_changes
from annals.projections.subscriptions.workers import deliverer
from tests.support.delivery_rig import Rig, advance_until, until

RETRY = Outcome(DeliveryResult.RETRY, "503", "busy")
REJECTED = Outcome(DeliveryResult.REJECTED, "400", "what is this")


@pytest.fixture
def rig(sqlite_url: str) -> Iterator[Rig]:
    rig = Rig(sqlite_url)
    yield rig
    rig.close()


@pytest.fixture
def both(store_url: str) -> Iterator[Rig]:
    """A registry with an empty log, on each database in turn."""
    rig = Rig(store_url)
    yield rig
    rig.close()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def failing(subject: str, *outcomes: Outcome) -> Callable[[str, Sequence[CloudEvent]], Outcome]:
    """Gives the outcomes for one subject in turn, the last one for ever; all other events are delivered."""
    left = list(outcomes)

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if all(event.get_subject() != subject for event in events):
            return DELIVERED
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def test_events_arrive_in_order(both: Rig) -> None:
    # SUB-113, 803, 804: from the creation of the subscription on, in log order, with their sequences
    async def deliver() -> None:
        both.groups("before")
        both.subscribe()
        async with both.delivering():
            last = both.groups("a", "b", "c")
            await until(lambda: len(both.receiver.arrived["s"]) == 3)
            await until(lambda: both.status()["position"] == last)

    run(deliver)
    assert both.receiver.subjects() == ["/dirs/a", "/dirs/b", "/dirs/c"]
    assert both.receiver.sequences() == [f"{position:020}.00" for position in (3, 4, 5)]
    assert both.status()["lag"] == 0


def test_a_subject_waits_and_others_do_not(both: Rig) -> None:
    # SUB-811, 812, walk-through 2: retries have the same id; the state is `retrying`, then `active`
    both.receiver.answer = failing("/dirs/a", RETRY, RETRY, RETRY, DELIVERED)

    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a", "b", "a", "c")
            await until(lambda: both.receiver.subjects() == ["/dirs/b", "/dirs/c"])
            await until(lambda: both.status()["state"] == "retrying")
            assert both.status()["position"] == 1
            assert both.status()["pending"] == 2
            await advance_until(both.clock, lambda: len(both.receiver.arrived["s"]) == 4)
            await until(lambda: both.status()["state"] == "active")

    run(deliver)
    assert both.receiver.subjects() == ["/dirs/b", "/dirs/c", "/dirs/a", "/dirs/a"]
    tried = [events[0] for events in both.receiver.attempts["s"] if events[0].get_subject() == "/dirs/a"]
    assert [event.get_id() for event in tried[:4]] == [tried[0].get_id()] * 4
    assert tried[4].get_id() != tried[0].get_id()


@pytest.mark.parametrize(
    ("ordering", "arrives"),
    [("subject", ["/dirs/b", "/dirs/a"]), ("source", ["/dirs/a", "/dirs/b"]), ("none", ["/dirs/b", "/dirs/a"])],
)
def test_what_is_kept_in_order(rig: Rig, ordering: str, arrives: list[str]) -> None:
    # SUB-811: with `source`, all events wait for the first one
    rig.receiver.answer = failing("/dirs/a", RETRY, DELIVERED)

    async def deliver() -> None:
        rig.subscribe(ordering=ordering)
        async with rig.delivering():
            rig.groups("a", "b")
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)

    run(deliver)
    assert rig.receiver.subjects() == arrives


def test_a_retry_that_is_due_comes_before_what_happened_later(both: Rig) -> None:
    # SUB-811, 812: if the sink takes one event at a time, subjects are also sent in log order
    busy = asyncio.Event()
    left = [RETRY, DELIVERED]

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if events[0].get_subject() == "/dirs/a":
            return left.pop(0)
        if events[0].get_subject() == "/dirs/b":
            await busy.wait()
        return DELIVERED

    both.receiver.answer, both.receiver.concurrency = answer, 1

    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a", "b", "c", "d")
            await until(lambda: len(both.receiver.attempts["s"]) == 2)
            both.clock.move(1)
            await asyncio.sleep(0.05)
            busy.set()
            await until(lambda: len(both.receiver.arrived["s"]) == 4)

    run(deliver)
    tried = [str(events[0].get_subject()) for events in both.receiver.attempts["s"]]
    assert tried == ["/dirs/a", "/dirs/b", "/dirs/a", "/dirs/c", "/dirs/d"]


def test_retries_go_on_while_new_events_wait(both: Rig) -> None:
    # SUB-812: with more than a thousand waiting subjects, due events are attempted, new ones are not
    failed = set[str]()

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        await asyncio.sleep(0)  # so that several attempts are running when a thousand subjects wait
        subject = str(events[0].get_subject())
        first = subject not in failed
        failed.add(subject)
        return RETRY if first else DELIVERED

    both.receiver.answer = answer
    ids = [f"/dirs/k{number}" for number in range(MAX_RETRYING_KEYS + 50)]

    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a")
            await until(lambda: both.status().get("nextattempt"))
            both.clock.move(0.5)
            both.record(*((xid, {"n": 1}) for xid in ids))
            await until(lambda: len(both.receiver.attempts["s"]) > MAX_RETRYING_KEYS)
            await asyncio.sleep(0.1)
            attempts = len(both.receiver.attempts["s"])
            assert attempts < MAX_RETRYING_KEYS + 10
            both.clock.move(0.5)
            await until(lambda: both.receiver.subjects() == ["/dirs/a"])
            await asyncio.sleep(0.1)
            # the due event, and a new one if exactly a thousand subjects wait now
            assert 1 <= len(both.receiver.attempts["s"]) - attempts <= 2
            await advance_until(both.clock, lambda: len(both.receiver.arrived["s"]) == len(ids) + 1)

    run(deliver)
    assert sorted(both.receiver.subjects()[1:]) == sorted(ids)


@pytest.mark.parametrize("failing_writes", [0, 2])
def test_attempts_and_their_times_survive_a_restart(
    both: Rig, monkeypatch: pytest.MonkeyPatch, failing_writes: int
) -> None:
    # SUB-821: the time of the next attempt and the number of attempts survive, also after a crash and failed writes
    failures: list[str] = []
    save = delivery_queries.save_updates

    def fail_first(db: Database, process: str, updates: Sequence[delivery_queries.StateUpdate]) -> set[str]:
        if len(failures) < failing_writes and any(update.pending for update in updates):
            failures.append(process)
            raise sqlite3.OperationalError("database is locked")
        return save(db, process, updates)

    monkeypatch.setattr(deliverer, "_FAILURE_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(delivery_queries, "save_updates", fail_first)
    both.receiver.answer = failing("/dirs/a", RETRY)
    began = both.clock.now

    async def deliver(crash: bool) -> None:
        async with both.delivering(crash=crash):
            await until(lambda: both.status().get("nextattempt"))
            await asyncio.sleep(0.3)  # time for two writes of the state

    async def whole() -> None:
        both.subscribe(retry={"maxattempts": 3, "initialdelay": 100, "multiplier": 2})
        both.groups("a")
        await deliver(crash=False)
        assert len(both.receiver.attempts["s"]) == 1
        await deliver(crash=True)
        assert len(both.receiver.attempts["s"]) == 1
        both.clock.now = began + 99
        await deliver(crash=True)
        assert len(both.receiver.attempts["s"]) == 1
        both.clock.now = began + 100
        async with both.delivering():
            await until(lambda: len(both.receiver.attempts["s"]) == 2)
            both.clock.move(200)
            await until(lambda: both.deadletters())

    run(whole)
    assert len(failures) == failing_writes
    assert len(both.receiver.attempts["s"]) == 3
    [letter] = both.deadletters()
    assert (letter["reason"], letter["attempts"], letter["code"], letter["event"]["subject"]) == (
        "maxattempts",
        3,
        "503",
        "/dirs/a",
    )


def test_a_dead_letter_is_tried_again(both: Rig) -> None:
    # SUB-831, 507: it gets a new set of attempts; success removes it, and so does discarding
    both.receiver.answer = failing("/dirs/a", REJECTED, REJECTED, DELIVERED)

    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a", "b", "a")
            await until(lambda: len(both.deadletters()) == 2)
            await until(lambda: both.status()["position"] == both.position)
            assert both.receiver.subjects() == ["/dirs/b"]
            first, second = (letter["sequence"] for letter in both.deadletters())
            both.act("redeliver", sequence=first)
            await until(lambda: len(both.deadletters()) == 1)
            assert both.receiver.sequences() == [f"{3:020}.00", first]
            both.act("discard", sequence=second)
            await until(lambda: not both.deadletters())

    run(deliver)
    assert both.deliveries.deadletter("s", f"{2:020}.00", can_read_everything) is None
    assert both.status()["deadletters"] == 0


def test_dead_letters_are_dropped_or_sent_to_another_sink(rig: Rig) -> None:
    # SUB-832: they carry the reason; those that the dead letter sink does not accept are stored
    letters = "https://letters.example/"
    sent_letters: list[CloudEvent] = []

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if events[0].get_extension("dlreason") is None:
            return REJECTED
        sent_letters.extend(events)
        return RETRY if events[0].get_subject() == "/dirs/b" else DELIVERED

    rig.receiver.answer = answer
    rig.receiver.concurrency = 1

    async def deliver() -> None:
        rig.subscribe(deadletter={"mode": "drop"})
        rig.groups("dropped")
        async with rig.delivering():
            await until(lambda: rig.status()["position"] == rig.position)
            assert not rig.deadletters()
            rig.subscribe(deadletter={"mode": "sink", "uri": letters})
            rig.groups("a", "b")
            await until(lambda: rig.deadletters())
            await until(lambda: rig.status()["position"] == rig.position)

    run(deliver)
    assert [letter["event"]["subject"] for letter in rig.deadletters()] == ["/dirs/b"]
    assert rig.receiver.targets[-1].uri == letters
    extensions = ("dlreason", "dlattempts", "dlsubscription")
    assert [sent_letters[0].get_extension(name) for name in extensions] == ["rejected", 1, "s"]


def test_a_store_that_fails_at_the_start(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # SUB-801: deliveries begin once the tables can be created and the subscriptions be read, and can end before that
    failures: list[str] = []

    def failing(name: str, work: Callable[..., Any], times: float) -> Callable[..., Any]:
        def fail_first(*arguments: Any) -> Any:
            if failures.count(name) < times:
                failures.append(name)
                raise sqlite3.OperationalError(f"{name}: database is locked")
            return work(*arguments)

        return fail_first

    async def deliver() -> None:
        rig.subscribe(start="earliest")
        rig.groups("a")
        async with rig.delivering():
            await until(lambda: rig.receiver.subjects() == ["/dirs/a"])

    async def end() -> None:
        async with rig.delivering():
            await until(lambda: len(failures) == 5)

    create_tables = state_database.create_tables
    monkeypatch.setattr(deliverer, "_FAILURE_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(state_database, "create_tables", failing("tables", create_tables, 1))
    monkeypatch.setattr(subscription_changes, "read_living", failing("load", subscription_changes.read_living, 2))
    run(deliver)
    assert failures == ["tables", "load", "load"]
    assert [record.message for record in caplog.records if record.name == "annals.deliveries"] == [
        f"deliveries: OperationalError: {name}: database is locked" for name in failures
    ]
    monkeypatch.setattr(state_database, "create_tables", failing("tables", create_tables, math.inf))
    run(end)


def test_pause_and_resume(both: Rig) -> None:
    # SUB-833, walk-through 4: no attempt starts once a pause is recorded; events of the pause arrive in order
    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a")
            await until(lambda: len(both.receiver.arrived["s"]) == 1)
            both.act("pause")
            both.groups("b", "c", "d", "e", "f")
            await asyncio.sleep(0.3)
            assert len(both.receiver.arrived["s"]) == 1
            assert both.status()["state"] == "paused"
        async with both.delivering():
            await asyncio.sleep(0.3)
            assert len(both.receiver.arrived["s"]) == 1
            both.act("resume")
            await until(lambda: len(both.receiver.arrived["s"]) == 6)

    run(deliver)
    assert both.receiver.sequences() == sorted(both.receiver.sequences())


@pytest.mark.parametrize("act", ["pause", "delete"])
def test_a_pause_or_deletion_that_was_answered_holds(both: Rig, act: str) -> None:
    # SUB-833, 504: before an attempt starts, every commit that this process has answered is applied
    started: list[int] = []

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        started.append(len(started))
        if len(started) == 1:  # the next attempt is the first that can know of it
            _ = both.act("pause") if act == "pause" else both.unsubscribe()
        return DELIVERED

    both.receiver.answer, both.receiver.concurrency = answer, 1

    async def deliver() -> None:
        both.subscribe()
        both.groups(*(f"g{number}" for number in range(20)))
        async with both.delivering():
            await until(lambda: started)
            await asyncio.sleep(0.2)

    run(deliver)
    assert started == [0]


def test_deleting_ends_deliveries_and_forgets(both: Rig) -> None:
    # SUB-504: undelivered events, dead letters and everything else in the tables are deleted
    both.receiver.answer = lambda id, events: REJECTED if events[0].get_subject() == "/dirs/a" else RETRY

    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a", "b")
            await until(lambda: both.deadletters())
            await until(lambda: both.status()["pending"] == 1)
            both.unsubscribe()
            both.groups("c")
            await until(lambda: not _rows(both))
            count = len(both.receiver.attempts["s"])
            both.clock.move(1000)
            both.subscribe("t")
            both.groups("a")
            await until(lambda: both.deadletters("t"))
            assert len(both.receiver.attempts["s"]) == count
        both.unsubscribe("t")
        async with both.delivering():
            await until(lambda: not _rows(both))

    run(deliver)


def _rows(rig: Rig) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    with rig.store.engine.connect() as connection:
        for table in ("state", "pending", "deadletter", "lease"):
            found += list(connection.exec_driver_sql(f"SELECT * FROM delivery_{table}"))
    return found


def test_an_update_applies_to_what_was_not_attempted(rig: Rig) -> None:
    # SUB-804, 502: events behind a waiting one are matched again; the waiting one was attempted, so it is still sent
    rig.receiver.answer = failing("/dirs/a", RETRY, DELIVERED)

    async def deliver() -> None:
        rig.subscribe(ordering="source")
        async with rig.delivering():
            rig.groups("a", "b", "c")
            await until(lambda: rig.receiver.attempts["s"])
            rig.subscribe(ordering="source", filters=[{"exact": {"subject": "/dirs/c"}}])
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)
            await until(lambda: rig.status()["position"] == rig.position)

    run(deliver)
    assert rig.receiver.subjects() == ["/dirs/a", "/dirs/c"]


def test_filters_are_compiled_once(rig: Rig) -> None:
    # SUB-411: an update compiles them; events and actions do not
    async def deliver() -> None:
        rig.subscribe(filters=[{"sql": "subject LIKE '/dirs/%'"}])
        async with rig.delivering() as deliverer:
            await until(lambda: "s" in deliverer.workers)
            compiled = deliverer.workers["s"].state.plan.event_filter
            rig.groups("a", "b")
            await until(lambda: len(rig.receiver.arrived["s"]) == 2)
            rig.act("pause")
            rig.act("resume")
            rig.groups("c")
            await until(lambda: len(rig.receiver.arrived["s"]) == 3)
            assert deliverer.workers["s"].state.plan.event_filter is compiled
            rig.subscribe()
            await until(lambda: deliverer.workers["s"].state.plan.event_filter is not compiled)

    run(deliver)


def test_another_start_moves_the_cursor(rig: Rig) -> None:
    # SUB-502: other updates do not move it
    async def deliver() -> None:
        rig.groups("a", "b")
        rig.subscribe()
        async with rig.delivering():
            rig.subscribe(filters=[{"prefix": {"subject": "/dirs/"}}])
            rig.groups("c")
            await until(lambda: "/dirs/c" in rig.receiver.subjects())
            assert rig.receiver.subjects() == ["/dirs/c"]
            rig.subscribe(start="earliest")
            await until(lambda: len(rig.receiver.arrived["s"]) == 4)

    run(deliver)
    assert rig.receiver.subjects() == ["/dirs/c", "/dirs/a", "/dirs/b", "/dirs/c"]


def test_replays(both: Rig) -> None:
    # SUB-834, 114: the range is sent again, with the same ids and times and the current filters; live events follow
    def facts(events: Sequence[CloudEvent]) -> list[Any]:
        return [(event.get_id(), event.get_time(), event.get_extension("sequence")) for event in events]

    async def deliver() -> None:
        both.subscribe()
        async with both.delivering():
            both.groups("a", "b", "a", "c")
            await until(lambda: len(both.receiver.arrived["s"]) == 4)
            both.subscribe(filters=[{"exact": {"subject": "/dirs/a"}}])
            assert not both.deliveries.is_replaying(both.subscription())
            both.act("replay", "s", **{"from": 1, "to": 4})
            both.groups("a")
            await until(lambda: len(both.receiver.arrived["s"]) == 7)
            await until(lambda: not both.deliveries.is_replaying(both.subscription()))
            assert "replay" not in both.status()

    run(deliver)
    arrived = both.receiver.arrived["s"]
    assert facts(arrived[4:6]) == [facts(arrived)[0], facts(arrived)[2]]
    assert arrived[6].get_extension("sequence") == f"{both.position:020}.00"


def test_a_replay_goes_on_after_a_crash(rig: Rig) -> None:
    # SUB-834, 801: live events wait until the replay has ended; the status shows its position
    rig.receiver.answer = failing("/dirs/b", RETRY)

    async def whole() -> None:
        rig.groups("a", "b", "c")
        rig.subscribe()
        rig.act("replay", "s", **{"from": 1, "to": 3})
        assert rig.deliveries.is_replaying(rig.subscription())
        async with rig.delivering(crash=True):
            rig.groups("live")
            await until(lambda: rig.status().get("replay", {}).get("position") == 1)
            assert rig.deliveries.is_replaying(rig.subscription())
            assert rig.receiver.subjects() == ["/dirs/a", "/dirs/c"]
        rig.receiver.answer = failing("/dirs/b", DELIVERED)
        async with rig.delivering():
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 4)

    run(whole)
    assert rig.receiver.subjects() == ["/dirs/a", "/dirs/c", "/dirs/b", "/dirs/live"]


def test_a_parallel_replay_does_not_hold_up_what_happens(rig: Rig) -> None:
    # SUB-834: with `parallel`, live events do not wait
    rig.receiver.answer = failing("/dirs/a", RETRY)

    async def deliver() -> None:
        rig.groups("a")
        rig.subscribe()
        async with rig.delivering():
            rig.act("replay", "s", **{"from": 1, "to": 1, "parallel": True})
            await until(lambda: rig.receiver.attempts["s"])
            rig.groups("live")
            await until(lambda: rig.receiver.subjects() == ["/dirs/live"])

    run(deliver)


def test_a_sink_that_is_gone(rig: Rig) -> None:
    # 8.3: no attempt until `resume` or an update; nothing is lost
    rig.receiver.answer = lambda id, events: Outcome(DeliveryResult.GONE, "410")

    async def whole() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a", "b")
            await until(lambda: rig.status()["state"] == "gone")
            count = len(rig.receiver.attempts["s"])
        async with rig.delivering():
            rig.clock.move(100_000)
            await asyncio.sleep(0.2)
            assert len(rig.receiver.attempts["s"]) == count
            assert rig.status()["lasterror"]["code"] == "410"
            rig.receiver.answer = lambda id, events: DELIVERED
            rig.act("resume")
            await until(lambda: len(rig.receiver.arrived["s"]) == 2)
            await until(lambda: rig.status()["state"] == "active")

    run(whole)
    assert sorted(rig.receiver.subjects()) == ["/dirs/a", "/dirs/b"]


def test_no_request_before_the_sink_wants_one(rig: Rig) -> None:
    # 8.3: `Retry-After` holds for the whole subscription, uses up no attempt and survives a restart
    at = datetime.fromtimestamp(rig.clock.now + 50, UTC)
    rig.receiver.answer = failing("/dirs/a", Outcome(DeliveryResult.RETRY, "429", retry_at=at), DELIVERED)
    rig.receiver.concurrency = 1

    async def whole() -> None:
        rig.subscribe(retry={"maxattempts": 1})
        async with rig.delivering():
            rig.groups("a", "b")
            await until(lambda: rig.receiver.attempts["s"])
            await asyncio.sleep(0.3)
        rig.clock.move(49)
        async with rig.delivering():
            await until(lambda: rig.clock.next == at.timestamp())  # it has seen the events and waits
            assert len(rig.receiver.attempts["s"]) == 1
            rig.clock.move(1)
            await until(lambda: len(rig.receiver.arrived["s"]) == 2)

    run(whole)
    assert not rig.deadletters()


@pytest.mark.parametrize("act", ["resume", "another sink"])
@pytest.mark.parametrize("is_told_when", [True, False])
def test_the_owner_ends_a_wait(rig: Rig, act: str, is_told_when: bool) -> None:
    # 8.3: a wait, whether the sink asked for it or not, ends when the owner resumes or sets another sink
    at = datetime.fromtimestamp(rig.clock.now + 9999, UTC) if is_told_when else None
    rig.receiver.answer = failing("/dirs/a", Outcome(DeliveryResult.RETRY, "503", retry_at=at), DELIVERED)

    async def whole() -> None:
        rig.subscribe(retry={"initialdelay": 9999, "maxdelay": 9999})
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: rig.status()["state"] == "retrying")
        async with rig.delivering():
            await until(lambda: rig.clock.next is not None)
            if act == "resume":
                rig.act("resume")
            else:
                rig.subscribe(retry={"initialdelay": 9999, "maxdelay": 9999}, sink="https://other.example/")
            await until(lambda: rig.receiver.subjects() == ["/dirs/a"])

    run(whole)


def test_fifty_dead_letters_in_a_row_suspend(rig: Rig) -> None:
    # SUB-822: new events stay in the log; `resume` continues at the cursor
    rig.receiver.answer = lambda id, events: REJECTED
    rig.receiver.concurrency = 1

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups(*(f"g{number}" for number in range(60)))
            await until(lambda: rig.status()["state"] == "suspended")
            assert len(rig.deadletters()) == 50
            rig.receiver.answer = lambda id, events: DELIVERED
            rig.act("resume")
            await until(lambda: len(rig.receiver.arrived["s"]) == 10)

    run(deliver)


def test_three_days_without_success_suspend(rig: Rig) -> None:
    # SUB-822
    rig.receiver.answer = lambda id, events: RETRY
    began = rig.clock.now

    async def deliver() -> None:
        rig.subscribe(retry={"maxattempts": 1000, "maxage": 10_000_000, "initialdelay": 10_000, "maxdelay": 10_000})
        async with rig.delivering():
            rig.groups("a")
            await advance_until(rig.clock, lambda: rig.status()["state"] == "suspended")

    run(deliver)
    assert 72 * 3600 <= rig.clock.now - began < 80 * 3600


def test_three_days_in_which_nothing_is_sent_suspend_nothing(rig: Rig) -> None:
    # SUB-822: they are no days of failures
    outcomes = [REJECTED, RETRY]
    rig.receiver.answer = lambda id, events: outcomes.pop(0) if outcomes else DELIVERED

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a")
            await until(rig.deadletters)
            rig.clock.move(4 * 86400)
            rig.groups("b")
            await advance_until(rig.clock, rig.receiver.subjects)

    run(deliver)
    assert rig.receiver.subjects() == ["/dirs/b"]


def test_events_that_are_given_up_for_three_days_suspend(rig: Rig) -> None:
    # SUB-822: also if each of them fails for a short time only
    rig.receiver.answer = lambda id, events: RETRY
    began = rig.clock.now

    async def deliver() -> None:
        rig.subscribe(ordering="source", retry={"maxattempts": 3, "initialdelay": 3600, "maxdelay": 3600})
        rig.groups(*(f"g{number}" for number in range(50)))
        async with rig.delivering():
            await advance_until(rig.clock, lambda: rig.status()["state"] == "suspended")

    run(deliver)
    assert 72 * 3600 <= rig.clock.now - began < 80 * 3600
    assert len(rig.deadletters()) < 50


def test_a_dead_letter_that_was_not_written_comes_first_again(both: Rig) -> None:
    # SUB-811, 801: events after one that was given up wait until that is stored, even across a crash
    both.receiver.answer = failing("/dirs/a", REJECTED, DELIVERED)
    both.write = 3600.0

    async def whole() -> None:
        both.subscribe()
        async with both.delivering(crash=True):
            both.groups("a", "b", "a")
            await until(lambda: both.receiver.subjects())
            both.groups("c")
            await until(lambda: "/dirs/c" in both.receiver.subjects())
            assert both.receiver.subjects() == ["/dirs/b", "/dirs/c"]
        both.write = 0.1
        async with both.delivering():
            await until(lambda: len(set(both.receiver.sequences())) == 4)

    run(whole)
    of_a = [event for event in both.receiver.arrived["s"] if event.get_subject() == "/dirs/a"]
    assert [event.get_extension("sequence") for event in of_a] == [f"{number:020}.00" for number in (2, 4)]


def test_a_hot_subject_blocks_no_other(rig: Rig) -> None:
    # SUB-811, 806: thousands of events of one subject wait for a sink that is slow for it. All other events arrive, the
    # status counts the waiting ones, few of them are in memory, and finally they arrive in order.
    hot, gate = 9_000, asyncio.Event()

    async def slowly() -> Outcome:
        await gate.wait()
        return DELIVERED

    def answer(id: str, events: Sequence[CloudEvent]) -> Any:
        return slowly() if id == "slow" and events[0].get_subject() == "/dirs/hot" else DELIVERED

    rig.receiver.answer = answer

    async def deliver() -> None:
        for id in ("slow", "swift"):
            rig.subscribe(id)
        rig.record_repeatedly("/dirs/hot", hot)
        rig.groups("a", "b")
        async with rig.delivering():
            await until(lambda: rig.receiver.subjects("slow") == ["/dirs/a", "/dirs/b"], 120)
            await until(lambda: len(rig.receiver.arrived["swift"]) == hot + 2, 120)
            await until(lambda: rig.status("slow")["pending"] == hot, 120)
            assert (rig.status("slow")["position"], rig.status("slow")["lag"]) == (2, hot + 2)
            assert sum(isinstance(each, EventMessage) for each in gc.get_objects()) < 2 * MAX_READY_KEYS
            gate.set()
            await until(lambda: rig.status("slow")["lag"] == 0, 120)

    run(deliver)
    for id in ("slow", "swift"):
        of_hot = [event for event in rig.receiver.arrived[id] if event.get_subject() == "/dirs/hot"]
        found = [event.get_extension("sequence") for event in of_hot]
        assert found == [f"{position:020}.00" for position in range(3, hot + 3)]


def test_batches(rig: Rig) -> None:
    # SUB-706: in sequence order, as many as allowed; halving finds an event that is rejected (8.3)
    bad = {"/dirs/g3"}

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        return REJECTED if any(event.get_subject() in bad for event in events) else DELIVERED

    rig.receiver.answer = answer

    async def deliver() -> None:
        rig.subscribe(contentmode="batched", maxbatchsize=8, maxbatchwait=200)
        async with rig.delivering():
            rig.groups(*(f"g{number % 5}" for number in range(10)))
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 8)
            await advance_until(rig.clock, lambda: len(rig.deadletters()) == 2)

    run(deliver)
    assert [len(events) for events in rig.receiver.attempts["s"]][:4] == [8, 4, 2, 2]
    assert rig.receiver.sequences() == sorted(rig.receiver.sequences())


def test_halves_of_a_batch_wait_as_the_sink_wants(rig: Rig) -> None:
    # 8.3: `Retry-After` also holds for the parts of a rejected batch, and uses up no attempt
    at = datetime.fromtimestamp(rig.clock.now + 600, UTC)
    outcomes = [REJECTED, Outcome(DeliveryResult.RETRY, "429", retry_at=at), DELIVERED]
    rig.receiver.answer = lambda id, events: outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]

    async def deliver() -> None:
        rig.subscribe(contentmode="batched", maxbatchsize=4, maxbatchwait=0, retry={"maxattempts": 1})
        rig.groups(*"abcd")
        async with rig.delivering():
            await until(lambda: rig.clock.next == at.timestamp())
            assert len(rig.receiver.attempts["s"]) == 2
            rig.clock.move(600)
            await until(lambda: len(rig.receiver.arrived["s"]) == 4)

    run(deliver)
    assert [len(events) for events in rig.receiver.attempts["s"]] == [4, 2, 2, 2]
    assert rig.receiver.sequences() == sorted(rig.receiver.sequences())
    assert not rig.deadletters()


def test_a_batch_waits_for_more(rig: Rig) -> None:
    # `maxbatchwait`: after that time, a batch is sent even if it is not full
    async def deliver() -> None:
        rig.subscribe(contentmode="batched", maxbatchsize=100, maxbatchwait=5000)
        async with rig.delivering():
            rig.groups("a")
            await asyncio.sleep(0.3)
            assert not rig.receiver.attempts["s"]
            rig.groups("b")
            await until(lambda: rig.status()["pending"] == 2)
            rig.clock.move(5)
            await until(lambda: rig.receiver.attempts["s"])

    run(deliver)
    assert [len(events) for events in rig.receiver.attempts["s"]] == [2]


def test_only_what_the_owner_may_read(sqlite_url: str) -> None:
    # SUB-911: access is checked before each attempt
    allowed = {"/dirs/a", "/dirs/b"}
    rig = Rig(sqlite_url, may_read=lambda subscription, subject: subscription.owner == "o" and subject in allowed)
    rig.receiver.answer = failing("/dirs/b", RETRY, DELIVERED)

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a", "b", "c")
            await until(lambda: len(rig.receiver.attempts["s"]) == 2)
            allowed.discard("/dirs/b")
            await advance_until(rig.clock, lambda: rig.status()["position"] == rig.position)

    run(deliver)
    assert rig.receiver.subjects() == ["/dirs/a"]
    rig.close()


def test_a_clock_that_is_set_back(rig: Rig) -> None:
    # SUB-801: retries are later, and nothing else changes
    rig.receiver.answer = failing("/dirs/a", RETRY, DELIVERED)

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a")
            await until(lambda: rig.receiver.attempts["s"])
            rig.clock.now -= 3600
            rig.groups("b")
            await until(lambda: rig.receiver.subjects() == ["/dirs/b"])
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)

    run(deliver)
    assert rig.receiver.subjects() == ["/dirs/b", "/dirs/a"]
    assert len(rig.receiver.attempts["s"]) == 3


@pytest.mark.parametrize("beyond", ["cursor", "reach", "pending"])
@pytest.mark.parametrize("ahead", [1, 2**60])
def test_a_state_of_another_log_counts_as_none(
    both: Rig, caplog: pytest.LogCaptureFixture, beyond: str, ahead: int
) -> None:
    # SUB-801, 802: a state with a position beyond the log is ignored, because it would skip events
    async def deliver() -> None:
        async with both.delivering():
            last = both.groups("a", "b")
            await until(lambda: both.status()["position"] == last)

    async def again() -> None:
        async with both.delivering():
            await until(lambda: len(both.receiver.arrived["s"]) == 2)
            both.groups("c")
            await until(lambda: len(both.receiver.arrived["s"]) == 3)

    async def once_more() -> None:
        async with both.delivering():
            last = both.groups("d")
            await until(lambda: both.status()["position"] == last)

    report_once.cache_clear()
    both.subscribe(start=1)
    run(deliver)
    head = both.position
    state, to, row = "cursor = ?", head + ahead, ""
    if beyond == "reach":
        facts = json.dumps({"epoch": 1, "since": 1, "reach": sequence_of(min(to, 2**54), 0)})
        state, to = f"facts = '{facts}', cursor = ?", head
    elif beyond == "pending":
        row, to = f"'s', 0, {sequence_of(min(to, 2**54), 0)}, 'k', 0, NULL, 0", head
    with both.store.writing() as tx:
        sql.run(tx.connection, f"UPDATE delivery_state SET {state}", (to,))
        if row:
            tx.connection.exec_driver_sql(f"INSERT INTO delivery_pending VALUES ({row})")
    assert both.status()["position"] == 0
    both.receiver.arrived.clear()
    run(again)
    assert both.receiver.subjects() == ["/dirs/a", "/dirs/b", "/dirs/c"]
    both.receiver.arrived.clear()
    run(once_more)  # nothing of the other log is left
    assert both.receiver.subjects() == ["/dirs/d"]
    reported = [record.getMessage() for record in caplog.records if "its deliveries begin again" in record.getMessage()]
    assert len(reported) == 1 and "beyond the end of the log" in reported[0]
