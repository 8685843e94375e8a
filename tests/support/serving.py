"""The console command and a served registry, as separate processes, for tests and benchmarks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.support.forks import Fork

ROOT = Path(__file__).resolve().parents[2]
_ADDRESS = re.compile(r"Annals serves (https?://\S+)")
_LOG = "serve.log"
#: The number of characters of a log that a failing test shows.
_SHOWN = 2_000


class Served(NamedTuple):
    """The address of a served registry, and its process."""

    url: str
    process: subprocess.Popen[bytes] | Fork


def environment(**settings: str) -> dict[str, str]:
    """The environment of a child process: `ANNALS_` settings only as given, and the source tree importable."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANNALS_")}
    return {**inherited, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", **settings}


def annals(*arguments: str | Path, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs the console command, and returns its exit code and output."""
    command = [*map(str, arguments)]
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "stdout"), Path(folder, "stderr")
        fork = Fork(command, cwd, environment(**settings), output, errors)
        try:
            ended = fork.wait(timeout=300)
        finally:
            fork.kill()
        return subprocess.CompletedProcess(command, ended, output.read_text(), errors.read_text())


@contextmanager
def serving(database: str, cwd: Path, *options: str, within: Sequence[str] = (), **settings: str) -> Iterator[Served]:
    """Serves a registry on a free port during the block. Its output is in `serve.log`.

    within: a prefix of the command, for a registry that runs elsewhere. settings: of its environment.
    """
    process = _started(("serve", "--port", "0", "--database", database, *options), cwd, within, environment(**settings))
    try:
        yield Served(_address(process, cwd / _LOG), process)
    finally:
        # pytest shows this with a test that fails.
        print(f"exit code of the server before its end: {process.poll()}\n{(cwd / _LOG).read_text()[-_SHOWN:]}")
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _started(
    arguments: Sequence[str], cwd: Path, within: Sequence[str], given: dict[str, str]
) -> subprocess.Popen[bytes] | Fork:
    path = cwd / _LOG
    path.write_bytes(b"")
    if not within:
        return Fork(arguments, cwd, given, path, path)
    with path.open("a") as log:
        command = [*within, sys.executable, "-m", "annals", *arguments]
        return subprocess.Popen(command, cwd=cwd, env=given, stderr=log, stdout=log)


def _address(process: subprocess.Popen[bytes] | Fork, path: Path) -> str:
    while process.poll() is None:
        if found := _ADDRESS.search(path.read_text()):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"the registry did not start:\n{path.read_text()}")
