"""The two distributions, built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.serving import ROOT


class Distributions(NamedTuple):
    """The files that `python -m build` writes; the wheel is built from the source distribution."""

    wheel: Path
    sdist: Path


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation, so that nothing is downloaded: the development environment has the build backend.
    command: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return Distributions(next(folder.glob("*.whl")), next(folder.glob("*.tar.gz")))
