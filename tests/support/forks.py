"""Processes of the console command that need not import the registry's modules, because they are forks of one that has.

Each is a process with an environment, a directory and open files of its own, which ends and is killed as any other; the
second that it takes to import everything is saved, hundreds of times over. What they share is the seed of hashes, so
where several registries have to come to the same, some test runs them from nothing.
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
#: What verbs and stores import when they need it.
_LATE_MODULES: Final = (
    *("annals.api.cli.server", "annals.api.cli.error_lines", "annals.api.cli.setup.unknown_settings"),
    *("kafka", "psycopg", "typer._adapters"),
)
_VERB_MODULES: Final = sorted({f"annals.api.cli.verbs.{verb.place.partition(':')[0]}" for verb in VERBS.values()})
_CONTEXT.set_forkserver_preload([*_VERB_MODULES, *_LATE_MODULES, "tests.support.forks"])


class Fork:
    """`annals` with arguments, as `subprocess.Popen` has a process.

    environment: all of it. said, complained: files to which its output and its errors are added.
    """

    def __init__(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], said: Path, complained: Path
    ) -> None:
        given = tuple(arguments), str(cwd), dict(environment), (str(said), str(complained))
        self._process = _CONTEXT.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """As `poll` gives it."""
        return self.poll()

    def poll(self) -> int | None:
        """What it ended with, the number of a signal below zero; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """What it ends with. Raises: subprocess.TimeoutExpired after so many seconds."""
        self._process.join(timeout)
        if (ended := self.poll()) is None:
            raise subprocess.TimeoutExpired("annals", timeout or 0)
        return ended

    def send_signal(self, sign: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sign)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: Sequence[str], cwd: str, environment: Mapping[str, str], files: tuple[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for name, stream in zip(files, (sys.stdout, sys.stderr), strict=True):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, stream.fileno())
        os.close(file)
    sys.argv = ["annals", *arguments]

    from annals.api.cli.main import main  # by the process that this one is a fork of

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a fork ends without them
