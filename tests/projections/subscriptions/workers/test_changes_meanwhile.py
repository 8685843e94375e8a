"""What changes while the deliverer waits for the log, a sink or a table: nothing older is applied to it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.subscriptions import event_messages
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.workers import event_dispatcher
from annals.projections.subscriptions.workers.deliverer import Deliverer
from annals.projections.subscriptions.workers.state_writer import StateWriter
from tests.support.delivery_rig import Clock, Rig, advance_until, until

RETRY = Outcome(DeliveryResult.RETRY, "503", "busy")
REJECTED = Outcome(DeliveryResult.REJECTED, "400", "what is this")
OTHER = "https://other.example/"


@pytest.fixture
def rig(sqlite_url: str) -> Iterator[Rig]:
    rig = Rig(sqlite_url)
    yield rig
    rig.close()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def at_the_first_event(change: Callable[[], object]) -> Callable[[str, Sequence[CloudEvent]], Outcome]:
    """Delivers everything, and makes a change at the first request; the next attempt applies it.

    Attempts run between slices of twenty messages, so that is in the middle of a longer chunk.
    """
    changes = [change]

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if changes:
            changes.pop()()
        return DELIVERED

    return answer


def test_another_start_while_the_log_is_read(rig: Rig) -> None:
    # SUB-502, 801: what is left of the chunk belongs to the old start; everything from the new one on arrives
    rig.groups(*(f"g{number}" for number in range(60)))
    rig.receiver.answer = at_the_first_event(lambda: rig.subscribe(start=1))

    async def deliver() -> None:
        rig.subscribe(start=31)
        async with rig.delivering():
            await until(lambda: rig.status()["position"] == rig.position)

    run(deliver)
    assert set(rig.receiver.subjects()) == {f"/dirs/g{number}" for number in range(60)}


@pytest.mark.parametrize("is_replay", [False, True])
def test_another_filter_while_the_log_is_read(rig: Rig, is_replay: bool) -> None:
    # SUB-804: it applies to all events that were not attempted, also to the first ones of the chunk
    names = ["x0", "x1", *(f"y{number}" for number in range(25)), "x2"]
    rig.groups(*names)
    start = "latest" if is_replay else "earliest"
    rig.receiver.answer = at_the_first_event(lambda: rig.subscribe(start=start))

    async def deliver() -> None:
        rig.subscribe(start=start, filters=[{"prefix": {"subject": "/dirs/x"}}])
        if is_replay:
            rig.act("replay", "s", **{"from": 1, "to": len(names)})
        async with rig.delivering():
            await until(lambda: rig.status()["position"] == rig.position)
            await until(lambda: not rig.deliveries.is_replaying(rig.subscription()))

    run(deliver)
    assert sorted(rig.receiver.subjects()) == sorted(f"/dirs/{name}" for name in names)


def test_another_filter_while_a_part_without_events_is_read(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-804: reading continues before that part, with the events that were not attempted
    is_reading, has_read, has_answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    rig.groups(*(f"g{number}" for number in range(20)))  # one chunk; the next one has only the subscription
    read_chunk = Deliverer._read_chunk

    async def read_slowly(deliverer: Deliverer, after: int, head: int) -> tuple[int, list[EventMessage]]:
        if after == 20:
            is_reading.set()
            await has_read.wait()
        return await read_chunk(deliverer, after, head)

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        await has_answered.wait()
        return DELIVERED

    for module in (event_dispatcher, event_messages):
        monkeypatch.setattr(module, "CHUNK_POSITIONS", 20)
    monkeypatch.setattr(Deliverer, "_read_chunk", read_slowly)
    rig.receiver.answer, rig.receiver.concurrency = answer, 1

    async def deliver() -> None:
        rig.subscribe(start="earliest")
        async with rig.delivering() as deliverer:
            await until(is_reading.is_set)
            rig.subscribe(start="earliest", filters=[{"prefix": {"subject": "/dirs/"}}])
            await until(lambda: deliverer.workers["s"].state.plan.position == rig.position)
            has_read.set()
            has_answered.set()
            await until(lambda: rig.status()["position"] == rig.position)

    run(deliver)
    assert rig.receiver.subjects() == [f"/dirs/g{number}" for number in range(20)]


@pytest.mark.parametrize("is_lagging", [False, True])
def test_rights_that_cannot_be_read_while_the_log_is_read(sqlite_url: str, is_lagging: bool) -> None:
    # SUB-801, 811: the chunk is read again; its first event is attempted nevertheless, and not queued a second time
    failures = [OSError("no connection")]

    def may_read(subscription: Subscription, xid: str) -> bool:
        if xid == "/dirs/b" and failures:
            raise failures.pop()
        return xid != "/dirs/b"

    rig = Rig(sqlite_url, may_read=may_read)
    outcomes = [RETRY]
    rig.receiver.answer = lambda id, events: (
        outcomes.pop() if outcomes and events[0].get_subject() == "/dirs/a" else DELIVERED
    )

    async def deliver() -> None:
        changes: tuple[tuple[str, dict[str, Any] | None], ...] = (("/dirs/a", {"n": 1}), ("/dirs/b", {"n": 1}))
        if is_lagging:
            rig.record(*changes)
        rig.subscribe(start="earliest")
        async with rig.delivering():
            if not is_lagging:
                rig.groups("first")
                await until(lambda: rig.receiver.arrived["s"])
                rig.record(*changes)
            await advance_until(rig.clock, lambda: "/dirs/a" in rig.receiver.subjects())
            assert not failures
            last = rig.groups("a")
            await until(lambda: f"{last:020}.00" in rig.receiver.sequences())

    run(deliver)
    attempted = [str(events[0].get_subject()) for events in rig.receiver.attempts["s"]]
    assert attempted.count("/dirs/a") == 3
    rig.close()


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(DeliveryResult.GONE, "410"),
        Outcome(DeliveryResult.RETRY, "429", retry_at=datetime.fromtimestamp(Clock().now + 86400, UTC)),
        REJECTED,
    ],
    ids=lambda outcome: outcome.code,
)
def test_a_replaced_sink_stops_nothing(rig: Rig, outcome: Outcome) -> None:
    # 8.3: a late failure of a sink says nothing about the sink that replaced it, which gets the event at once
    gate = asyncio.Event()

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if rig.receiver.targets[-1].uri == OTHER:
            return DELIVERED
        await gate.wait()
        return outcome

    rig.receiver.answer = answer

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering() as deliverer:
            rig.groups("a")
            await until(lambda: rig.receiver.attempts["s"])
            changed = rig.subscribe(sink=OTHER)
            await until(lambda: deliverer.workers["s"].state.plan.position == changed.position)
            gate.set()
            await until(lambda: rig.receiver.subjects() == ["/dirs/a"])
            await until(lambda: rig.status()["position"] == rig.position)
            assert rig.status()["state"] == "active"

    run(deliver)
    assert not rig.deadletters()


def test_another_sink_for_dead_letters_while_one_is_sent(rig: Rig) -> None:
    # SUB-304, 832: settings of different updates are not mixed; the rest of the batch is sent with the new ones
    gate, refusals = asyncio.Event(), [RETRY]

    async def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if events[0].get_extension("dlreason") is not None:
            await gate.wait()
            return DELIVERED
        return refusals.pop() if refusals else DELIVERED

    rig.receiver.answer = answer
    settings: dict[str, Any] = {"contentmode": "batched", "maxbatchsize": 2, "retry": {"maxattempts": 1}}

    async def deliver() -> None:
        rig.subscribe(**settings, deadletter={"mode": "sink", "uri": "https://letters.example/"})
        async with rig.delivering() as deliverer:
            rig.record(("/dirs/a", {"n": 1}), ("/dirs/b", {"n": 1}))
            await until(lambda: len(rig.receiver.attempts["s"]) == 2)
            changed = rig.subscribe(**settings, deadletter={"mode": "sink", "uri": OTHER})
            await until(lambda: deliverer.workers["s"].state.plan.position == changed.position)
            gate.set()
            await advance_until(rig.clock, lambda: len(rig.receiver.arrived["s"]) == 2)

    run(deliver)
    letter, event = rig.receiver.arrived["s"]
    assert (letter.get_subject(), letter.get_extension("dlreason")) == ("/dirs/a", "maxattempts")
    assert (event.get_subject(), event.get_extension("dlreason")) == ("/dirs/b", None)
    assert OTHER not in {target.uri for target in rig.receiver.targets}


def test_rights_that_end_while_a_batch_is_halved(sqlite_url: str) -> None:
    # SUB-911: access is checked before each request
    allowed = {f"/dirs/{name}" for name in "abcd"}
    rig = Rig(sqlite_url, may_read=lambda subscription, subject: subject in allowed)

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        allowed.discard("/dirs/c")
        return REJECTED if len(events) > 1 else DELIVERED

    rig.receiver.answer = answer

    async def deliver() -> None:
        rig.subscribe(contentmode="batched", maxbatchsize=4)
        async with rig.delivering():
            rig.record(*((f"/dirs/{name}", {"n": 1}) for name in "abcd"))
            await advance_until(rig.clock, lambda: rig.status()["position"] == rig.position)

    run(deliver)
    requests = [[str(event.get_subject()) for event in events] for events in rig.receiver.attempts["s"]]
    assert requests[0] == ["/dirs/a", "/dirs/b", "/dirs/c", "/dirs/d"]
    assert not any("/dirs/c" in request for request in requests[1:])
    assert rig.receiver.subjects() == ["/dirs/a", "/dirs/b", "/dirs/d"]
    rig.close()


def test_a_write_that_ends_after_its_worker_was_replaced(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-801: it does not count as a write of the next worker's state, whose dead letters would be lost
    is_written, gate, save = Event(), Event(), StateWriter._save

    def save_slowly(*arguments: Any) -> set[str]:
        ids = save(*arguments)
        if any(update.dead_letters for update in arguments[2]) and not is_written.is_set():
            is_written.set()
            gate.wait()
        return ids

    monkeypatch.setattr(StateWriter, "_save", save_slowly)
    rig.receiver.answer = lambda id, events: REJECTED

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering() as deliverer:
            rig.groups("a")
            await until(is_written.is_set)
            first = deliverer.workers["s"]
            rig.forget_processes()  # its leases expire and are free again
            second = await until(lambda: (worker := deliverer.workers.get("s")) is not first and worker)
            rig.groups("b")
            await until(lambda: second.state.dead_letters)
            gate.set()
            await until(lambda: len(rig.deadletters()) == 2)

    run(deliver)
