"""Processes that are watched while they run: their time, their memory, and the work of processors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from bench.memory import busy, proportional
from tests.support.serving import environment

#: Memory of Spark's driver, in which the tasks of `local[n]` run as well.
HEAP: Final = "2g"
#: Cores of Spark.
CORES: Final = 2
GIGABYTE: Final = 1 << 30
#: Settings of `annals` commands that use Spark.
SPARK_SETTINGS: Final = {
    "ANNALS_SPARK_MASTER": f"local[{CORES}]",
    "ANNALS_SPARK_MEMORY": HEAP,
    "ANNALS_SPARK_CONF": json.dumps({"spark.ui.enabled": "false", "spark.log.level": "OFF"}),
}
#: Seconds between looks at memory.
_LOOK: Final = 0.5


class Run(NamedTuple):
    """Of a process with all its children: seconds by stage, the most bytes of memory, seconds of processors' work."""

    seconds: dict[str, float]
    memory: int
    busy: float

    @property
    def all(self) -> float:
        """Seconds of the whole, the start of Spark included."""
        return self.seconds["all"]


def run_stage(*arguments: str | Path, cores: int = CORES) -> Run:
    """What a process of `bench.stages` says of itself. Raises: RuntimeError when it fails."""
    settings = SPARK_SETTINGS | {"ANNALS_SPARK_MASTER": f"local[{cores}]"}
    said, run = _watched([sys.executable, "-m", "bench.stages", *map(str, arguments)], settings)
    return run._replace(seconds=json.loads(said.splitlines()[-1]))


def run_annals(*arguments: str | Path, **settings: str) -> Run:
    """A command of the console. Raises: RuntimeError when it fails."""
    return _watched([sys.executable, "-m", "annals", *map(str, arguments)], settings)[1]


def _watched(command: Sequence[str], settings: dict[str, str]) -> tuple[str, Run]:
    """What a process prints, and what it took. Raises: RuntimeError when it fails."""
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    began = time.perf_counter()
    with (
        TemporaryDirectory(prefix="annals-bench-") as folder,
        subprocess.Popen(command, cwd=folder, env=environment(**settings), **piped) as child,
        _Watch(child.pid) as watch,
    ):
        said, complaint = child.communicate()
    if child.returncode:
        raise RuntimeError(complaint[-2000:])
    return said, Run({"all": time.perf_counter() - began}, watch.peak, watch.busy)


class _Watch(threading.Thread):
    """Looks at a process and its children until it is left. peak: bytes of memory. busy: seconds of work."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.busy = 0.01
        self._pid = pid
        self._over = threading.Event()

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, proportional(self._pid))
            self.busy = max(self.busy, busy(self._pid))
            if self._over.wait(_LOOK):
                return

    def __enter__(self) -> _Watch:
        self.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._over.set()
        self.join()
