"""Registries and wires that fail while a log is followed: nothing is lost, nothing is there twice.

LEG-912: what comes twice or late does no harm. LEG-913: after a full look both ends hold the same.
`ANNALS_TEST_BEHIND` sets how many events a replica is behind that starts late.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from tests.end_to_end.replication.test_pushing import lines, pushed
from tests.end_to_end.replication.unreliable_proxy import Wire, wire
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, TOKENS, Registry, registries, wait_until_equal_logs

#: How a log comes over, and the database of the primary.
_ROADS = [("pull", "postgresql"), ("events", "sqlite"), ("push", "sqlite")]
#: Events that a replica is behind, and seconds that it may take for them.
_FAR = int(os.environ.get("ANNALS_TEST_BEHIND", "20000"))
_LONG = 120 + _FAR / 200


@pytest.fixture(params=_ROADS, ids="-".join)
def mode_and_databases(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """A mode, and URLs of databases by the name of the registry that has them."""
    mode, database = request.param
    return mode, {"a": request.getfixturevalue("postgres_url")} if database == "postgresql" else {}


def join(a: Registry, b: Registry, mode: str, a_url: str | None = None, b_url: str | None = None) -> None:
    """Has b follow a. a_url, b_url: where each is for the other."""
    if mode == "push":
        b.link("log", a_url or a.url, mode="receive")
        a.link("log", b_url or b.url, mode="push", interval=5)
    else:
        b.link("log", a_url or a.url, mode=mode, interval=5)


def a_version(registry: Registry, number: int) -> str:
    """Writes one of many Versions; the id of the interaction."""
    return registry.write(f"g{number % 7}/s{number % 11}/{number}", schema="x" * (number % 900))


@contextmanager
def writing(
    registry: Registry, write: Callable[[Registry, int], str] = a_version, pause: float = 0.0
) -> Iterator[list[str]]:
    """Writes to a registry all the while, whether it is there or not; what it confirmed: ids of interactions.

    write: another write, by its number; gives what is to be kept of it. pause: seconds between two.
    """
    done: list[str] = []
    over = Event()

    def run() -> None:
        number = 0
        while not over.wait(pause):
            number += 1
            try:
                done.append(write(registry, number))
            except (httpx.HTTPError, AssertionError):
                time.sleep(0.05)

    thread = Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def complete(a: Registry, b: Registry, done: list[str], seconds: float = 60.0) -> None:
    """Both hold the same, which is all that was confirmed, each once; and the replica's log is in order."""
    wait_until_equal_logs(a, b, seconds=seconds)
    found = b.ids()
    assert len(found) == len(set(found))
    assert set(done) <= set(found)
    b.verified()


def _grows(number: Callable[[], int], beyond: float | None = None, seconds: float = 30.0) -> None:
    """Returns once a number is beyond one, by default the one that it is now."""
    known = number() if beyond is None else beyond
    until(lambda: number() > known, seconds)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_killed_replica_loses_and_repeats_nothing(
    tmp_path: Path, mode_and_databases: tuple[str, dict[str, Any]]
) -> None:
    """LEG-910: what is recorded is whole interactions, wherever the replica ends."""
    mode, databases = mode_and_databases
    moments = random.Random(f"replica {mode}")
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(20, 40)
        join(a, b, mode)
        with writing(a) as done:
            for _ in range(4):
                time.sleep(moments.uniform(0.05, 1.2))
                b.kill()
                b.start()
            _grows(lambda: b.head()["position"])
        complete(a, b, done)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_killed_primary_loses_and_repeats_nothing(
    tmp_path: Path, mode_and_databases: tuple[str, dict[str, Any]]
) -> None:
    """LEG-913: what the primary confirmed arrives, however often it starts again."""
    mode, databases = mode_and_databases
    moments = random.Random(f"primary {mode}")
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(20, 40)
        join(a, b, mode)
        with writing(a) as done:
            for _ in range(3):
                time.sleep(moments.uniform(0.05, 1.0))
                a.kill()
                time.sleep(moments.uniform(0, 0.5))
                a.start()
                _grows(lambda: len(done))
        complete(a, b, done)
        a.verified()


def _cut(found: Wire, seconds: float) -> None:
    found.cut()
    time.sleep(seconds)
    found.mend()


def _silence(found: Wire, seconds: float) -> None:
    found.silent = True
    time.sleep(seconds)
    found.silent = False


@pytest.mark.long
@pytest.mark.timeout(300)
def test_replication_survives_cut_silent_and_slow_connections(
    tmp_path: Path, mode_and_databases: tuple[str, dict[str, Any]]
) -> None:
    """LEG-912: whatever becomes of single requests, the next ones find what is missing."""
    mode, databases = mode_and_databases
    moments = random.Random(f"wire {mode}")
    with registries(tmp_path, "a", "b", **databases) as (a, b), wire(a.url) as there, wire(b.url) as back:
        a.fill(10, 40)
        join(a, b, mode, there.url, back.url)
        used = back if mode == "push" else there
        with writing(a) as done:
            for fault in (_cut, _silence, _cut, _silence):
                time.sleep(moments.uniform(0.1, 0.8))
                fault(used, moments.uniform(0.2, 2))
            used.piece, used.pause = 700, 0.02
            time.sleep(2)
            used.cut()
            used.mend()
            used.piece, used.pause = 1 << 16, 0.0
            _grows(lambda: used.carried)
        complete(a, b, done)


@pytest.mark.long
def test_pushes_that_come_twice_and_in_any_order(tmp_path: Path) -> None:
    """LEG-912: duplicated, late and reordered pieces change nothing; one that is too early is refused."""
    chance = random.Random(9)
    with registries(tmp_path, "a", "b") as (a, b):
        a.fill(12, 5)
        b.link("in", a.url, mode="receive")
        ends = [0, *(a.done("GET", f"/-/log/head?asof={id}")["position"] for id in a.ids())]
        for _ in range(200):
            first, last = sorted(chance.sample(range(len(ends)), 2))
            known = b.status("in")["position"]
            answer = pushed(b, lines(a, ends[first], ends[last]), ends[first])
            if ends[first] > known:
                assert (answer.status_code, answer.json()["position"]) == (409, known)
            else:
                assert answer.json() == {"position": max(known, ends[last])}
        complete(a, b, a.ids())


@pytest.mark.parametrize("mode", ["pull", "events", "push"])
def test_a_credential_that_changes(tmp_path: Path, mode: str) -> None:
    """LEG-901: a link says that it is not let in, and goes on once it is given what lets it in."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("g/s/1")
        join(a, b, mode)
        wait_until_equal_logs(a, b)
        gate, other = (b, a) if mode == "push" else (a, b)
        gate.stop()
        gate.settings["ANNALS_TOKENS"] = json.dumps({"a-new-token": TOKENS[TOKEN]})
        gate.start()
        gate.credential("a-new-token")
        a.write("g/s/2")
        until(lambda: "401" in other.status("log").get("error", ""))
        assert other.status("log")["state"] == "failing"
        other.link("log", gate.url, mode=mode, interval=5, credential={"token": "a-new-token"})
        wait_until_equal_logs(a, b)
        until(lambda: other.status("log")["state"] == "active")
        assert "a-new-token" not in other.request("GET", "/-/links/log").text
        b.verified()


@pytest.mark.long
@pytest.mark.timeout(180 + 3 * _LONG)
@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_replica_that_starts_far_behind(tmp_path: Path, mode: str, postgres_url: str) -> None:
    """LEG-913: a full look at the start brings all that there is, killed in the middle of it or not."""
    with registries(tmp_path, "a", "b", a=postgres_url) as (a, b):
        size = 499  # of a Group with its schemas and their Versions
        a.fill(_FAR // (2 * size), size)
        assert a.head()["position"] >= _FAR - 4 * size
        join(a, b, mode)
        for part in (0.2, 0.6):
            _grows(lambda: b.head()["position"], part * _FAR, _LONG)
            b.kill()
            b.start()
        complete(a, b, a.ids(), _LONG)
