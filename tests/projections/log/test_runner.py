"""Following the log: whole interactions, once each, by one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from threading import Event, Thread

import pytest
from sqlalchemy import Connection

from domain.registry.events import EntityEvent
from projections.log.follower import LogFollower
from tests.support.registries.recorded import Registry


class Seen:
    """Writes down what it is given; fails when told to."""

    name = "seen"

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.failing = False

    def apply(self, connection: Connection, recorded: Sequence[tuple[int, EntityEvent]]) -> None:
        if self.failing:
            raise ZeroDivisionError
        self.batches.append([position for position, _ in recorded])


def test_steps_are_whole_interactions(registry: Registry) -> None:
    seen = Seen()
    runner = LogFollower(registry.store, seen, together=2)
    assert runner.step() == 0
    for group in ("a", "b", "c"):
        registry.record((f"/dirs/{group}", {}), (f"/dirs/{group}/files/f", {}))
    assert runner.catch_up() == 6
    assert seen.batches == [[1, 2, 3, 4], [5, 6]]
    assert runner.position() == 6


def test_a_failed_step_is_done_again(registry: Registry) -> None:
    seen = Seen()
    runner = LogFollower(registry.store, seen)
    registry.record(("/dirs/a", {}))
    seen.failing = True
    with pytest.raises(ZeroDivisionError):
        runner.step()
    assert runner.position() == 0
    seen.failing = False
    assert LogFollower(registry.store, seen).catch_up() == 1
    assert seen.batches == [[1]]


def test_two_runners_of_one_projection_share_the_work(registry: Registry) -> None:
    seen = Seen()
    runners = [LogFollower(registry.store, seen, together=1) for _ in range(2)]
    for n in range(40):
        registry.record((f"/dirs/d{n}", {}))
    threads = [Thread(target=runner.catch_up) for runner in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(chain(*seen.batches)) == list(range(1, 41))


def test_it_follows_until_stopped(registry: Registry) -> None:
    seen, stop = Seen(), Event()
    thread = Thread(target=LogFollower(registry.store, seen).run, args=(stop, 0.001))
    thread.start()
    try:
        registry.record(("/dirs/a", {}))
        registry.record(("/dirs/b", {}))
        while sum(map(len, seen.batches)) < 2:
            stop.wait(0.001)
    finally:
        stop.set()
        thread.join()
    assert list(chain(*seen.batches)) == [1, 2]
