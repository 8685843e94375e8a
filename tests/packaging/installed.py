"""An environment with an installed distribution, used from the folder of another project."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

_ADDRESS: Final = re.compile(r"Annals serves (http://\S+)")
#: Top-level packages of the other project, named like top-level folders of this one.
OTHERS: Final = ("api", "domain", "commands", "projections", "spark_projections")


class Installed(NamedTuple):
    """environment: with the distribution. project: the folder in which commands run, first on Python's path."""

    environment: Path
    project: Path

    def annals(self, *arguments: str | Path) -> str:
        """The output of the installed command, which must succeed."""
        return self._run(self.environment / "bin" / "annals", *arguments)

    def python(self, program: str, *arguments: str, **variables: str) -> str:
        """The output of a program, which must succeed."""
        return self._run(self.environment / "bin" / "python", "-c", program, *arguments, **variables)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The URL of a registry that the installed command serves from `annals.db`."""
        command: list[str | Path] = [self.environment / "bin" / "annals", "serve", "--port", "0"]
        with subprocess.Popen(command, cwd=self.project, env=self._variables(), stderr=subprocess.PIPE) as process:
            assert process.stderr
            try:
                yield next(found[1] for line in process.stderr if (found := _ADDRESS.search(line.decode())))
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=30)

    def _run(self, *command: str | Path, **variables: str) -> str:
        done = subprocess.run(
            command, cwd=self.project, env=self._variables() | variables, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _variables(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ANNALS_", "PYTHON"))}
        return inherited | {"PYTHONPATH": str(self.project), "NO_COLOR": "1", "COLUMNS": "200"}


def install(distribution: Path, folder: Path) -> Installed:
    """A new environment with the distribution. It uses the dependencies of this environment, without downloads."""
    installed = Installed(folder / "environment", folder / "project")
    venv.create(installed.environment)
    packages = next(installed.environment.glob("lib/python*/site-packages"))
    # Python ignores .pth files in folders that a .pth file adds, so an editable Annals is not importable.
    packages.joinpath("dependencies.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        installed.environment / "bin" / "python",
        "install",
        "--quiet",
    ]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--no-cache-dir"]
    subprocess.run([*pip, *options, distribution], check=True, timeout=100)
    _write_other_project(installed.project)
    return installed


def _write_other_project(folder: Path) -> None:
    for name in OTHERS:
        folder.joinpath(name).mkdir(parents=True)
        folder.joinpath(name, "__init__.py").write_text('OWNER = "other"\n')
