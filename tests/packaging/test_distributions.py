"""Wheel and source distribution have every file of the package, and metadata that a package index accepts."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import annals
from tests.packaging.conftest import Distributions
from tests.support.serving import ROOT

ROOMS = ("domain", "commands", "projections", "api", "spark_projections")
#: The module that Spark imports to find the data source. It is at the top level of the wheel.
FOUND_BY_SPARK = "pyspark_annals.py"


def files_of_the_package() -> Iterator[str]:
    """The names in the package of the files of `annals` and of the folders that it links to."""
    yield from (f"annals/{file.name}" for file in (ROOT / "annals").iterdir() if file.is_file())
    for room in ROOMS:
        for file in (ROOT / room).rglob("*"):
            if file.is_file() and file.parent.name != "__pycache__":
                yield f"annals/{file.relative_to(ROOT)}"


def metadata(wheel: ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"annals-{annals.__version__}.dist-info/METADATA").decode())


def test_the_wheel_has_every_file(distributions: Distributions) -> None:
    files = set(files_of_the_package())
    assert {name.rpartition(".")[2] for name in files} == {"py", "yaml", "json", "html", "css", "js", "typed", "zdict"}
    packed = {name for name in ZipFile(distributions.wheel).namelist() if ".dist-info/" not in name}
    assert packed == files - {f"annals/spark_projections/sources/{FOUND_BY_SPARK}"} | {FOUND_BY_SPARK}


def test_the_source_distribution_has_every_file(distributions: Distributions) -> None:
    others = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO", ".gitignore"}
    with tarfile.open(distributions.sdist) as archive:
        # Symbolic links would be dead: the archive does not have the top-level folders.
        assert [member.name for member in archive if not member.isfile()] == []
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed == {*files_of_the_package(), *others}


def test_an_index_accepts_them(distributions: Distributions) -> None:
    command: list[str | Path] = [sys.executable, "-m", "twine", "check", "--strict", *distributions]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_metadata(distributions: Distributions) -> None:
    wheel = ZipFile(distributions.wheel)
    found = metadata(wheel)
    assert (found["Version"], found["License-Expression"]) == (annals.__version__, "Apache-2.0")
    assert found.get_all("License-File") == ["LICENSE"]
    assert "Typing :: Typed" in found.get_all("Classifier", [])
    licence = wheel.read(f"annals-{annals.__version__}.dist-info/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()
