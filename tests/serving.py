"""The console command and a served registry, as processes of their own, for tests and benchmarks."""

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
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_ADDRESS = re.compile(r"Annals serves (http://\S+)")


class Served(NamedTuple):
    """Where a registry answers, and its process."""

    url: str
    process: subprocess.Popen[bytes]


def environment(**settings: str) -> dict[str, str]:
    """The environment of a child: no setting of the machine's but those given, and the source tree importable."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANNALS_")}
    return {**inherited, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", **settings}


def annals(*arguments: str | Path, cwd: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """What the console command ended with."""
    command = [sys.executable, "-m", "api.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment(**settings), capture_output=True, text=True, timeout=300)


@contextmanager
def serving(database: str, cwd: Path, *options: str, within: Sequence[str] = (), **settings: str) -> Iterator[Served]:
    """A registry served on a free port; stopped, and waited for, at the end. What it says is in `serve.log`.

    within: what its command begins with, for one that runs elsewhere. settings: of its environment.
    """
    command = [*within, sys.executable, "-m", "api.cli", "serve", "--port", "0", "--database", database, *options]
    said = cwd / "serve.log"
    with said.open("w") as log:
        process = subprocess.Popen(command, cwd=cwd, env=environment(**settings), stderr=log, stdout=log)
        try:
            yield Served(_address(process, said), process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    while process.poll() is None:
        if found := _ADDRESS.search(said.read_text()):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"the registry did not start:\n{said.read_text()}")
