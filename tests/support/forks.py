"""Processes of the console command that are forks of a process that has already imported the registry's modules.

Each has its own environment, directory and open files, and ends or is killed like any other process. This saves the
second that the imports take, in hundreds of processes. All forks have the same hash seed, so tests that compare several
registries also start some as new processes.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from annals.api.cli.lazy_verbs import VERBS

_CONTEXT = get_context("forkserver")
#: Modules that verbs and stores import late.
_LATE_MODULES: Final = (
    *("annals.api.cli.server", "annals.api.cli.error_lines", "annals.api.cli.setup.unknown_settings"),
    *("kafka", "psycopg", "typer._adapters"),
)
_VERB_MODULES: Final = sorted({f"annals.api.cli.verbs.{verb.place.partition(':')[0]}" for verb in VERBS.values()})
_CONTEXT.set_forkserver_preload([*_VERB_MODULES, *_LATE_MODULES, "tests.support.forks"])


class Fork:
    """A process of `annals`, with the methods of `subprocess.Popen`.

    environment: the whole environment. stdout, stderr: files to which stdout and stderr are appended.
    """

    def __init__(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> None:
        given = tuple(arguments), str(cwd), dict(environment), (str(stdout), str(stderr))
        self._process = _CONTEXT.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """See `poll`."""
        return self.poll()

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the exit code. Raises: subprocess.TimeoutExpired after `timeout` seconds."""
        self._process.join(timeout)
        if (ended := self.poll()) is None:
            raise subprocess.TimeoutExpired("annals", timeout or 0)
        return ended

    def send_signal(self, sign: int) -> None:
        """Sends a signal if the process still runs."""
        if self.poll() is None:
            os.kill(self.pid, sign)

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: Sequence[str], cwd: str, environment: Mapping[str, str], files: tuple[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for name, stream in zip(files, (sys.stdout, sys.stderr), strict=True):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, stream.fileno())
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background process ignores it
    sys.argv = ["annals", *arguments]

    from annals.api.cli.main import main  # already imported by the fork server

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a fork does not call them when it ends
