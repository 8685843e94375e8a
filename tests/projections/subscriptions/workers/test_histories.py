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

from cloudevents.core.v1.event import CloudEvent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome
from tests.support.delivery_rig import Rig, advance_until
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
    wanted = [event for event in _expected_events(rig) if event["subject"] is not None]
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


def _expected_events(rig: Rig) -> list[dict[str, Any]]:
    """The attributes of all messages after the subscription's creation."""
    from annals.projections.database.connections import connect
    from annals.projections.log.reader import Log
    from annals.projections.subscriptions.event_messages import EventMessageReader
    from tests.support.delivery_rig import FAMILIES

    reader = connect(rig.url)
    try:
        feed, after, found = EventMessageReader(lambda: Log(reader), FAMILIES), 1, []
        while after < rig.position:
            after, messages = feed.read_chunk(after, rig.position)
            found += [dict(each.attributes) for each in messages]
        return found
    finally:
        reader.close()
