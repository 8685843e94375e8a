"""Any history, failures and crashes: no event is lost, subjects keep their order, repeats are recognizable."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome
from annals.projections.subscriptions.decisions.delivery_queue import LIVE
from annals.projections.subscriptions.sequence import parse_sequence
from annals.projections.subscriptions.workers.event_dispatcher import EventDispatcher
from annals.projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from tests.support.delivery_rig import Rig, advance_until, until
from tests.support.examples import examples

FEW = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))

#: Answers of a sink to an attempt; `late` is a slow acknowledgement.
SAYS = ("delivered", "delivered", "delivered", "late", "retry", "retry", "later", "rejected", "unauthorized", "gone")


@dataclass(frozen=True)
class Run:
    """One run of a deliverer. groups: interactions; says: the sink's answers; asked: an action; crash: how it ends."""

    groups: tuple[tuple[str, ...], ...]
    says: tuple[str, ...]
    asked: str
    crash: bool


RUNS = st.lists(
    st.builds(
        Run,
        st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(tuple), max_size=4).map(
            tuple
        ),
        st.lists(st.sampled_from(SAYS), max_size=8).map(tuple),
        st.sampled_from(("", "", "", "pause", "resume", "update", "replay")),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


class Sinks:
    """A sink that gives the answers in `says` in turn, and then accepts everything. sent: all events it was sent."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.says: list[str] = []
        self.sent: list[CloudEvent] = []
        self.running: dict[str, int] = defaultdict(int)
        self.overlaps = 0

    async def answer(self, id: str, events: Sequence[CloudEvent]) -> Outcome:
        subjects = {str(event.get_subject()) for event in events}
        self.overlaps += any(self.running[subject] for subject in subjects)
        self.sent += events
        for subject in subjects:
            self.running[subject] += 1
        try:
            return await self._outcome(self.says.pop(0) if self.says else "delivered")
        finally:
            for subject in subjects:
                self.running[subject] -= 1

    async def _outcome(self, what: str) -> Outcome:
        match what:
            case "late":
                await asyncio.sleep(0.02)
            case "later":
                at = datetime.fromtimestamp(self._rig.clock.now + 10, UTC)
                return Outcome(DeliveryResult.RETRY, "429", retry_at=at)
            case "retry" | "rejected" | "unauthorized" | "gone":
                return Outcome(DeliveryResult(what), what)
        return DELIVERED


@FEW
@given(RUNS, st.sampled_from(("subject", "source")), st.sampled_from(("structured", "batched")), st.booleans())
def test_nothing_is_lost(runs: list[Run], ordering: str, mode: str, soon: bool) -> None:
    # SUB-801, 802, 811, 812, 833: each event from the start on arrives or is a dead letter, however the runs end
    with TemporaryDirectory() as folder:
        rig = Rig(f"sqlite:///{Path(folder) / 'annals.db'}")
        rig.write = 0.001 if soon else 0.1  # seconds between writes; a crash loses what is not written
        sinks = Sinks(rig)
        rig.receiver.answer = sinks.answer
        batching: dict[str, Any] = {"maxbatchsize": 3, "maxbatchwait": 100} if mode == "batched" else {}
        rig.subscribe(ordering=ordering, contentmode=mode, **batching)
        try:
            asyncio.run(_run_all(rig, sinks, runs, {"ordering": ordering, "contentmode": mode, **batching}))
            _check(rig, sinks)
        finally:
            rig.close()


async def _run_all(rig: Rig, sinks: Sinks, runs: list[Run], members: dict[str, Any]) -> None:
    for run in runs:
        sinks.says = list(run.says)
        async with rig.delivering(crash=run.crash):
            for ids in run.groups:
                rig.record(*((f"/dirs/{id}", {"n": 1}) for id in ids))
                await asyncio.sleep(0.004)
            match run.asked:
                case "pause" | "resume":
                    rig.act(run.asked)
                case "update":
                    rig.subscribe(**members)
                case "replay":
                    rig.act("replay", "s", **{"from": 1, "to": rig.position})
            await asyncio.sleep(0.02)
            rig.clock.move(0.5)
            await asyncio.sleep(0.01)
    sinks.says = []
    async with rig.delivering():
        rig.act("resume")
        await advance_until(rig.clock, lambda: rig.status()["position"] == rig.position and not rig.status()["pending"])
        await advance_until(rig.clock, lambda: not rig.deliveries.is_replaying(rig.subscription()))


def _check(rig: Rig, sinks: Sinks) -> None:
    wanted = [event for event in _published_events(rig, after=1) if event["subject"] is not None]
    arrived = rig.receiver.arrived["s"]
    sequences = {str(event.get_extension("sequence")) for event in arrived}
    dead = {letter["sequence"] for letter in rig.deadletters()}
    assert sequences | dead == {event["sequence"] for event in wanted}
    # The same event has the same id, and different events have different ids.
    ids = {(str(event.get_extension("sequence")), event.get_id()) for event in sinks.sent}
    assert len(ids) == len({sequence for sequence, _ in ids}) == len({id for _, id in ids})
    assert not sinks.overlaps
    # First arrivals of a subject are in log order, except for dead letters and replays.
    first: dict[str, list[str]] = defaultdict(list)
    for event in arrived:
        sequence, subject = str(event.get_extension("sequence")), str(event.get_subject())
        if sequence not in first[subject] and sequence not in dead:
            first[subject].append(sequence)
    assert all(found == sorted(found) for found in first.values())


@dataclass(frozen=True)
class Update:
    """An update of the subscription by its owner. arrivals: the number of events that arrive before the next one."""

    arrivals: int
    prefix: str
    start: int


@dataclass(frozen=True)
class Change:
    """A change as the deliverer applies it.

    since: the position of the event that set where the subscription starts. read_up_to: where reading continues.
    arrived: the number of events that had arrived.
    """

    prefix: str
    since: int
    read_up_to: int
    arrived: int


UPDATES = st.lists(
    st.builds(
        Update,
        st.integers(1, 30),
        st.sampled_from(("/dirs/", "/dirs/x", "/dirs/y")),
        st.sampled_from((1, 1, 60, 230)),
    ),
    min_size=2,
    max_size=5,
)


@FEW
@given(UPDATES)
def test_no_update_skips_events(updates: list[Update]) -> None:
    # SUB-801, 804, 502: however often the owner changes filter and start while the log is read, all events arrive that
    # the filter wants which is in force when reading passes them
    with TemporaryDirectory() as folder:
        rig = Rig(f"sqlite:///{Path(folder) / 'annals.db'}")
        for first in range(0, 300, 30):
            names = (f"{'x' if number % 5 == 0 else 'y'}{number}" for number in range(first, first + 30))
            rig.record(*((f"/dirs/{name}", {"n": 1}) for name in names))
        try:
            changes = asyncio.run(_update_while_reading(rig, updates))
            events, arrived = _published_events(rig, after=0), rig.receiver.sequences()
            missing = [event["sequence"] for event in events if _is_missing(event, changes, arrived)]
            assert not missing
        finally:
            rig.close()


async def _update_while_reading(rig: Rig, updates: list[Update]) -> list[Change]:
    """Makes the updates, the first of which creates the subscription. Returns all changes, in order."""
    left, changes, due = list(updates), list[Change](), 0

    def update() -> None:
        nonlocal due
        each = left.pop(0)
        due = len(rig.receiver.arrived["s"]) + each.arrivals
        rig.subscribe(start=each.start, filters=[{"prefix": {"subject": each.prefix}}])

    def answer(id: str, events: Sequence[CloudEvent]) -> Outcome:
        if left and len(rig.receiver.arrived["s"]) >= due:
            update()
        return DELIVERED

    def record_change(dispatcher: EventDispatcher, worker: SubscriptionWorker) -> None:
        subscription, read_up_to = worker.state.plan.subscription, worker.state.queues[LIVE].read_up_to
        prefix = subscription.attributes["filters"][0]["prefix"]["subject"]
        changes.append(Change(prefix, subscription.since, read_up_to, len(rig.receiver.arrived["s"])))
        add(dispatcher, worker)

    add = EventDispatcher.add
    rig.receiver.answer = answer
    update()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventDispatcher, "add", record_change)
        async with rig.delivering():
            await until(lambda: rig.status()["position"] == rig.position and not rig.status()["pending"])
    return changes


def _is_missing(event: dict[str, Any], changes: list[Change], arrived: list[str]) -> bool:
    """Whether an event should have arrived since the start was set, and did not.

    The filter judges it that is in force when reading passes it for the last time, and later ones if it is still not
    attempted. If the start changes after that, the event is before the new start.
    """
    sequence = parse_sequence(event["sequence"])
    assert sequence is not None
    passed = [index for index, change in enumerate(changes) if change.read_up_to < sequence]
    judging = changes[passed[-1] :] if passed else []
    if not judging or judging[0].since != judging[-1].since:
        return False
    start = next(change for change in changes if change.since == judging[0].since)
    is_wanted = all(event["subject"].startswith(change.prefix) for change in judging)
    return is_wanted and event["sequence"] not in arrived[start.arrived :]


def _published_events(rig: Rig, after: int) -> list[dict[str, Any]]:
    """The attributes of all messages after a position."""
    from annals.projections.database.connections import connect
    from annals.projections.log.reader import Log
    from annals.projections.subscriptions.event_messages import EventMessageReader
    from tests.support.delivery_rig import FAMILIES

    reader = connect(rig.url)
    try:
        feed, found = EventMessageReader(lambda: Log(reader), FAMILIES), []
        while after < rig.position:
            after, messages = feed.read_chunk(after, rig.position)
            found += [dict(each.attributes) for each in messages]
        return found
    finally:
        reader.close()
