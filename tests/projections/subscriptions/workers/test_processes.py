"""Real processes, real sockets: killed between a request and its answer, taking over from each other, restarting."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.support.delivery_rig import Rig
from tests.support.polling import until
from tests.support.serving import ROOT, environment
from tests.support.webhooks import Webhooks, webhooks

LEASE = 1.5


@pytest.fixture
def receiver() -> Iterator[Webhooks]:
    with webhooks() as receiver:
        yield receiver


@pytest.fixture
def rig(store_url: str) -> Iterator[Rig]:
    rig = Rig(store_url)
    yield rig
    rig.close()


@contextmanager
def child(rig: Rig, sign: int = signal.SIGKILL) -> Iterator[subprocess.Popen[bytes]]:
    """A process that delivers, killed at the end."""
    command = [sys.executable, "-m", "tests.projections.subscriptions.workers.killable_deliverer", rig.url, str(LEASE)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"started\n"
        yield process
    finally:
        process.send_signal(sign)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_none_of_ten_thousand_is_lost(rig: Rig, receiver: Webhooks) -> None:
    # SUB-801, walk-through 3: killed several times during requests; a repeated event has the same source and id
    rig.subscribe(sink=f"{receiver.url}/s")
    wanted = 10_000
    for start in range(0, wanted, 250):
        rig.record(*((f"/dirs/g{number % 500}", {"n": number}) for number in range(start, start + 250)))
    chance = random.Random(7)
    receiver.delay = 0.002
    for _ in range(4):
        before = len(receiver.received["/s"])
        with child(rig):
            until(partial(lambda count: len(receiver.received["/s"]) > count + chance.randrange(200, 1200), before))
    assert len(receiver.events("/s")) < wanted
    receiver.delay = 0.0
    with child(rig):
        until(lambda: len({event["id"] for event in receiver.events("/s")}) == wanted, 120)
    events = receiver.events("/s")
    assert len({(event["source"], event["id"], event["sequence"], event["time"]) for event in events}) == wanted
    repeated = [count for count in Counter(event["id"] for event in events).values() if count > 1]
    assert max(repeated, default=1) <= 5
    first: dict[str, dict[str, None]] = {}
    for event in events:
        first.setdefault(event["subject"], {}).setdefault(event["sequence"])
    assert all(list(found) == sorted(found) for found in first.values())


def test_another_process_takes_over_after_a_crash(rig: Rig, receiver: Webhooks) -> None:
    # SUB-805: one of two processes sends each event; after a crash the other continues when the lease has expired
    for name in "abcdefgh":
        rig.subscribe(name, sink=f"{receiver.url}/{name}")
    with child(rig, signal.SIGKILL) as first, child(rig):
        until(lambda: len(_holders(rig)) == 2)  # they share the subscriptions
        rig.groups(*(f"g{number}" for number in range(50)))
        until(lambda: all(len(_ids(receiver, name)) == 50 for name in "abcdefgh"))
        time.sleep(0.5)
        before = {name: len(receiver.events(f"/{name}")) for name in "abcdefgh"}
        first.send_signal(signal.SIGKILL)
        first.wait()
        killed = time.monotonic()
        rig.groups("after")
        until(lambda: all(len(_ids(receiver, name)) == 51 for name in "abcdefgh"))
        # With the product's own lease of ten seconds, this takes less than fifteen.
        assert time.monotonic() - killed < 15
    # The other process repeated no event whose acknowledgement had been stored.
    assert all(len(receiver.events(f"/{name}")) <= before[name] + 2 for name in "abcdefgh")


def _ids(receiver: Webhooks, name: str) -> set[str]:
    # A process that was delayed for longer than its lease may repeat an event that the other one has sent.
    return {event["id"] for event in receiver.events(f"/{name}")}


def _holders(rig: Rig) -> set[str]:
    with rig.store.engine.connect() as connection:
        return {row[0] for row in connection.exec_driver_sql("SELECT process FROM delivery_lease")}
