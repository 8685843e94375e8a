"""A star: one primary, three replicas with a different link mode each, and an independent registry that it copies.

The number of writes is that of an hour with one write a second, made as fast as the machine allows, while processes are
killed and suspended. `ANNALS_TEST_STAR` sets the number of writes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from tests.end_to_end.replication.traffic import Traffic
from tests.support.polling import until
from tests.support.registries.restarted import SEPARATE_PROCESS, TOKEN, Registry, wait_until_equal_logs
from tests.support.stores import schema_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WRITES = int(os.environ.get("ANNALS_TEST_STAR", "3600"))
_SEED = 20


def test_an_hour_of_a_star(tmp_path: Path, postgres_server: str) -> None:
    # LEG-905, LEG-906, LEG-909, LEG-912, LEG-913: nothing is lost or duplicated, and all logs are equal at the end
    with ExitStack() as stack:
        database = stack.enter_context(schema_of(postgres_server))
        foreign = stack.enter_context(_foreign())
        primary, *replicas = (
            stack.enter_context(_served(tmp_path / name, database if name == "primary" else None))
            for name in ("primary", "pulled", "pushed", "told")
        )
        pulled, pushed, notified = replicas
        primary.link("foreign", foreign.url, dialect="xregistry", interval=0.5, credential=None)
        pulled.link("primary", primary.url)
        pushed.link("primary", primary.url, mode="receive", credential=None)
        primary.link("pushed", pushed.url, mode="push", remote="primary")
        notified.link("primary", primary.url, mode="events", interval=5)
        traffic = Traffic(lambda: primary.url, {"authorization": f"Bearer {TOKEN}"}, _SEED)
        others = Writer(foreign.url)
        others.start()
        traffic.start()
        for number, fault in enumerate(_faults(primary, pulled, pushed, notified, foreign), 1):
            traffic.wait(WRITES * number // 7)
            fault()
        traffic.wait(WRITES)
        traffic.stop()
        others.stop()
        assert not [status for status in traffic.answers if status >= 500 and status != 503]
        until(lambda: _held(primary) == others.held, 120)
        _wait_until_equal(primary, replicas)
        for registry in (primary, *replicas):
            registry.verified()
        assert {_exported(replica) for replica in replicas} == {_exported(primary)}


def _wait_until_equal(primary: Registry, replicas: list[Registry]) -> None:
    """Returns once all logs are equal. After a timeout, fails with the status of all links."""
    try:
        wait_until_equal_logs(primary, *replicas, seconds=240)
    except AssertionError:
        links = [registry.done("GET", "/-/links") for registry in (primary, *replicas)]
        pytest.fail(json.dumps(links, indent=1))


def _faults(
    primary: Registry, pulled: Registry, pushed: Registry, notified: Registry, foreign: Foreign
) -> list[Callable[[], None]]:
    """The faults, in the order in which they occur."""
    return [
        lambda: _kill_and_restart(pulled),
        lambda: _suspend(foreign.process.pid),
        lambda: _kill_and_restart(primary),
        lambda: _kill_and_restart(pushed),
        lambda: _suspend(notified.process.pid),
        lambda: _kill_and_restart(notified),
    ]


def _kill_and_restart(registry: Registry) -> None:
    registry.kill()
    time.sleep(1)
    registry.start()


def _suspend(process: int) -> None:
    """Suspends a process for a while, so that it does not respond."""
    os.kill(process, signal.SIGSTOP)
    time.sleep(3)
    os.kill(process, signal.SIGCONT)


@contextmanager
def _served(home: Path, database: str | None) -> Iterator[Registry]:
    registry = Registry(home, database, SEPARATE_PROCESS)
    registry.start()
    try:
        yield registry
    finally:
        registry.close()


class Foreign:
    """A registry of another implementation, in its own process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.url = process.stdout.readline().strip()


@contextmanager
def _foreign() -> Iterator[Foreign]:
    command = [sys.executable, "-m", "tests.support.registries.independent_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Foreign(process)
        finally:
            process.kill()


class Writer:
    """Writes to the foreign registry. held: names of the existing notes by xid, according to the responses."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.held: dict[str, str] = {}

    def start(self) -> None:
        """Starts the writer."""
        self._thread.start()

    def stop(self) -> None:
        """Stops after the response to the running request."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        chance = random.Random(_SEED)
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._ended.wait(0.1):
                xid = f"/dirs/d{chance.randrange(3)}/notes/n{chance.randrange(8)}"
                if xid in self.held and chance.random() < 0.3:
                    client.delete(xid).raise_for_status()
                    del self.held[xid]
                else:
                    name = f"{chance.random()}"
                    client.put(xid, json={"name": name}).raise_for_status()
                    self.held[xid] = name


def _held(registry: Registry) -> dict[str, str]:
    """The notes that a registry copied from the foreign one, as in `Writer.held`."""
    found: dict[str, Any] = registry.done("GET", "/?inline=dirs.notes").get("dirs", {})
    notes = (note for dir in found.values() for note in dir.get("notes", {}).values())
    return {note["xid"]: note["name"] for note in notes}


def _exported(registry: Registry) -> str:
    """The export of a registry, without its URL."""
    return json.dumps(registry.done("GET", "/export")).replace(registry.url, "")
