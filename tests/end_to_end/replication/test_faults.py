"""Registries and connections that fail while a replica follows a log: no event is lost or recorded twice.

LEG-912: duplicate and late data is harmless. LEG-913: after a full pull both registries have the same contents.
`ANNALS_TEST_BEHIND` sets the number of events that a replica lacks when it starts late.
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
from tests.end_to_end.replication.unreliable_proxy import UnreliableProxy, unreliable_proxy
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, TOKENS, Registry, registries, wait_until_equal_logs

#: Mode of the link, and database of the primary.
_MODES = [("pull", "postgresql"), ("events", "sqlite"), ("push", "sqlite")]
#: Number of events that a replica lacks, and seconds in which it has to copy them.
_BEHIND = int(os.environ.get("ANNALS_TEST_BEHIND", "20000"))
_SECONDS = 120 + _BEHIND / 200


@pytest.fixture(params=_MODES, ids="-".join)
def mode_and_databases(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """A link mode, and database URLs by registry name."""
    mode, database = request.param
    return mode, {"a": request.getfixturevalue("postgres_url")} if database == "postgresql" else {}


def follow(a: Registry, b: Registry, mode: str, a_url: str | None = None, b_url: str | None = None) -> None:
    """Makes b follow a. a_url, b_url: the URL at which each is reached by the other."""
    if mode == "push":
        b.link("log", a_url or a.url, mode="receive")
        a.link("log", b_url or b.url, mode="push", interval=5)
    else:
        b.link("log", a_url or a.url, mode=mode, interval=5)


def a_version(registry: Registry, number: int) -> str:
    """Writes one of many Versions; returns the id of the interaction."""
    return registry.write(f"g{number % 7}/s{number % 11}/{number}", schema="x" * (number % 900))


@contextmanager
def writing(
    registry: Registry, write: Callable[[Registry, int], str] = a_version, pause: float = 0.0
) -> Iterator[list[str]]:
    """Writes continuously, also while the registry is down; yields the ids of the interactions that it confirmed.

    write: makes the write with a number; its result is added to the list. pause: seconds between two writes.
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


def check_replica(a: Registry, b: Registry, done: list[str], seconds: float = 60.0) -> None:
    """Checks that both logs are equal and have every confirmed interaction once, and verifies the replica's log."""
    wait_until_equal_logs(a, b, seconds=seconds)
    found = b.ids()
    assert len(found) == len(set(found))
    assert set(done) <= set(found)
    b.verified()


def _wait_until_exceeds(number: Callable[[], int], beyond: float | None = None, seconds: float = 30.0) -> None:
    """Returns once a number exceeds a limit, by default its present value."""
    known = number() if beyond is None else beyond
    until(lambda: number() > known, seconds)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_killed_replica_loses_and_repeats_nothing(
    tmp_path: Path, mode_and_databases: tuple[str, dict[str, Any]]
) -> None:
    """LEG-910: a replica records whole interactions, whenever it is killed."""
    mode, databases = mode_and_databases
    moments = random.Random(f"replica {mode}")
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(20, 40)
        follow(a, b, mode)
        with writing(a) as done:
            for _ in range(4):
                time.sleep(moments.uniform(0.05, 1.2))
                b.kill()
                b.start()
            _wait_until_exceeds(lambda: b.head()["position"])
        check_replica(a, b, done)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_killed_primary_loses_and_repeats_nothing(
    tmp_path: Path, mode_and_databases: tuple[str, dict[str, Any]]
) -> None:
    """LEG-913: all writes that the primary confirmed arrive, however often it is restarted."""
    mode, databases = mode_and_databases
    moments = random.Random(f"primary {mode}")
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(20, 40)
        follow(a, b, mode)
        with writing(a) as done:
            for _ in range(3):
                time.sleep(moments.uniform(0.05, 1.0))
                a.kill()
                time.sleep(moments.uniform(0, 0.5))
                a.start()
                _wait_until_exceeds(lambda: len(done))
        check_replica(a, b, done)
        a.verified()


def _cut(proxy: UnreliableProxy, seconds: float) -> None:
    proxy.cut()
    time.sleep(seconds)
    proxy.mend()


def _silence(proxy: UnreliableProxy, seconds: float) -> None:
    proxy.silent = True
    time.sleep(seconds)
    proxy.silent = False


@pytest.mark.long
@pytest.mark.timeout(300)
def test_replication_survives_cut_silent_and_slow_connections(
    tmp_path: Path, mode_and_databases: tuple[str, dict[str, Any]]
) -> None:
    """LEG-912: if requests fail, later ones fetch the missing events."""
    mode, databases = mode_and_databases
    moments = random.Random(f"wire {mode}")
    with (
        registries(tmp_path, "a", "b", **databases) as (a, b),
        unreliable_proxy(a.url) as there,
        unreliable_proxy(b.url) as back,
    ):
        a.fill(10, 40)
        follow(a, b, mode, there.url, back.url)
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
            _wait_until_exceeds(lambda: used.carried)
        check_replica(a, b, done)


@pytest.mark.long
def test_pushes_that_come_twice_and_in_any_order(tmp_path: Path) -> None:
    """LEG-912: duplicate, late and reordered parts of the log change nothing; a part after a gap is refused."""
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
        check_replica(a, b, a.ids())


@pytest.mark.parametrize("mode", ["pull", "events", "push"])
def test_a_credential_that_changes(tmp_path: Path, mode: str) -> None:
    """LEG-901: a link with an invalid credential reports the 401, and continues once it has a valid one."""
    with registries(tmp_path, "a", "b") as (a, b):
        a.write("g/s/1")
        follow(a, b, mode)
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
@pytest.mark.timeout(180 + 3 * _SECONDS)
@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_replica_that_starts_far_behind(tmp_path: Path, mode: str, postgres_url: str) -> None:
    """LEG-913: the full pull at the start copies everything, even if the replica is killed during it."""
    with registries(tmp_path, "a", "b", a=postgres_url) as (a, b):
        size = 499  # schemas of a Group, each with a Version
        a.fill(_BEHIND // (2 * size), size)
        assert a.head()["position"] >= _BEHIND - 4 * size
        follow(a, b, mode)
        for part in (0.2, 0.6):
            _wait_until_exceeds(lambda: b.head()["position"], part * _BEHIND, _SECONDS)
            b.kill()
            b.start()
        check_replica(a, b, a.ids(), _SECONDS)
