"""Processes that die and processes that share a store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sqlalchemy import text

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log
from tests.support.small_decider import decide, write

ROOT = Path(__file__).resolve().parents[2]


def writer(url: str, name: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.commands.writer", url, name, *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def recorded(store: Store) -> set[tuple[str, int, int]]:
    with store.engine.connect() as connection:
        rows = connection.execute(text("SELECT xregcorrelationid, first, last FROM interaction")).all()
    return {(name, first, last) for name, first, last in rows}


def acknowledged(output: str) -> set[tuple[str, int, int]]:
    lines = [line.split() for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return {(name, int(first), int(last)) for name, first, last in lines}


def test_acknowledged_writes_survive_a_kill(store: Store, store_url: str) -> None:
    """EV-79: each acknowledged interaction is recorded as a whole; any other is recorded as a whole or not at all."""
    with writer(store_url, "w") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(60)]
        process.kill()
        output = "".join(lines) + process.stdout.read()
    assert acknowledged(output) <= recorded(store)
    assert len(acknowledged(output)) >= 60
    assert list(verify_log(store)) == []
    [outcome] = handle([PendingCommand(write("/dirs/shared"))], store, [], decide)
    assert isinstance(outcome, Recorded)
    assert outcome.events[0][1].revision == len(recorded(store))


def test_two_processes_share_a_store(store: Store, store_url: str) -> None:
    """The lock is the database's: two writers interleave, and positions stay gap-free in commit order."""
    with writer(store_url, "left", "80") as left, writer(store_url, "right", "80") as right:
        outputs = [process.communicate(timeout=60)[0] for process in (left, right)]
    assert acknowledged(outputs[0]) | acknowledged(outputs[1]) == recorded(store)
    assert store.log_end().position == 320
    assert [event.revision for _, event in store.events(0, 400) if event.xid == "/dirs/shared"] == list(range(1, 161))
    assert list(verify_log(store)) == []
