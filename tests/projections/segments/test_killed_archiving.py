"""Processes that archive are killed: the store stays complete, and the next process completes the work."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.segments.archive import archive_status
from tests.support.archives import archivable_positions, archived_positions, open_store
from tests.support.registries.in_process import create, serving
from tests.support.serving import environment

pytestmark = pytest.mark.long

ENTITIES = 600


def run(url: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "annals", "log", *arguments]
    env = environment(ANNALS_DATABASE=url)
    return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def files(folder: Path, kind: str) -> int:
    return sum(1 for _ in (folder / "archive" / kind).glob("*"))


#: The command of each process, and the number whose increase triggers the kill; for `unarchive`, a decrease.
KILLS: Final[tuple[tuple[str, Callable[[Store, Path], int]], ...]] = (
    ("archive", lambda store, folder: files(folder, "log")),
    ("archive", lambda store, folder: files(folder, "documents")),
    ("archive", lambda store, folder: files(folder, "manifest")),
    ("archive", lambda store, folder: archive_status(store).last),
    ("archive", lambda store, folder: len(archived_positions(store))),
    ("archive", lambda store, folder: len(archived_positions(store))),
    ("unarchive", lambda store, folder: -len(archived_positions(store))),
    ("archive", lambda store, folder: len(archived_positions(store))),
    ("unarchive", lambda store, folder: -len(archived_positions(store))),
    ("unarchive", lambda store, folder: -len(archived_positions(store))),
)


@pytest.mark.timeout(600)
def test_killed_at_any_moment_no_event_is_lost(store_url: str, tmp_path: Path) -> None:
    create(store_url)
    with serving(store_url) as api:
        for name in ("a", "b", "c", "d"):
            api.done("POST", "/dirs", {f"d{number}": {"name": f"{name}{number}" * 20} for number in range(ENTITIES)})
            api.done("PUT", "/dirs/d1/files/f", name.encode() * 100)
    with open_store(store_url) as store:
        before, end = store.events(0, 100_000), store.log_end().position
        arguments = {
            "archive": ("archive", "--before", str(end), "--to", "archive", "--events", "50", "--group", "20"),
            "unarchive": ("unarchive",),
        }
        counts = set[int]()
        for verb, progress in KILLS:
            start, process = progress(store, tmp_path), run(store_url, tmp_path, *arguments[verb])
            while process.poll() is None and progress(store, tmp_path) <= start:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            counts.add(len(archived_positions(store)))
            assert store.events(0, 100_000) == before
            assert [*verify_log(store), *verify_history(store)] == []
        assert len(counts) > 3  # some processes had moved a part of the states
        complete(store_url, tmp_path, arguments["archive"])
        assert archived_positions(store) == archivable_positions(store, end - 1)
        complete(store_url, tmp_path, arguments["unarchive"])
        assert archived_positions(store) == []
        assert store.events(0, 100_000) == before
        assert [*verify_log(store), *verify_history(store)] == []


def complete(url: str, folder: Path, arguments: tuple[str, ...]) -> None:
    process = run(url, folder, *arguments)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output.decode()
