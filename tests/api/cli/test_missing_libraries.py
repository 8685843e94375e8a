"""A verb whose libraries are not installed says how to install them, for the Python that runs it."""

from __future__ import annotations

import shlex
import sys
import tomllib

import pytest

from annals.api.cli.outcome import ExitCode
from annals.api.cli.spark_session import SPARK_PACKAGES
from tests.support.console import Annals
from tests.support.serving import ROOT


def test_without_pyspark_its_packages_are_named(annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pyspark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)  # Python marks a module that cannot be imported so
    ended = annals("spark", "sql", "--from", "http://127.0.0.1:1", "SELECT 1")
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    command = f"{shlex.quote(sys.executable)} -m pip install {shlex.join(SPARK_PACKAGES)}\n"
    assert ended.err.startswith("annals: this needs Spark (pyspark")
    assert ended.err.endswith(f"is missing); install it with: {command}")


def test_the_packages_are_those_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(SPARK_PACKAGES) == project["optional-dependencies"]["spark"]
