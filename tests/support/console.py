"""The console command, run in the test's process, in an empty folder, without the `ANNALS_` settings of the machine."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from annals.api.cli.main import main
from annals.api.cli.setup.unknown_settings import warn_about_unknown_settings


class Ended(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Annals = Callable[..., Ended]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("ANNALS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Undoes what a command sets for its process: log handlers, log level, and that warnings were printed."""
    root, own = logging.getLogger(), logging.getLogger("annals")
    handlers, level, hook = [*root.handlers], own.level, sys.excepthook
    warn_about_unknown_settings.cache_clear()
    yield
    root.handlers, sys.excepthook = handlers, hook
    own.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def annals(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Annals:
    def run(*arguments: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["annals", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, *capfd.readouterr())

    return run
