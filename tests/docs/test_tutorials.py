"""Tutorials do what they say: their commands are run against an empty registry and their outputs compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.serving import ROOT, serving
from tests.test_readme import Step, pattern, run

FOLDER = ROOT / "docs" / "tutorials"
TUTORIALS = sorted(path.name for path in FOLDER.glob("*.md") if path.name != "README.md")
_BLOCK = re.compile(r"```sh\n(?P<commands>.*?)```\n```text\n(?P<output>.*?)```\n", re.DOTALL)


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial(name: str, tmp_path: Path) -> None:
    text = FOLDER.joinpath(name).read_text()
    blocks = [*_BLOCK.finditer(text)]
    assert len(blocks) == text.count("```sh") > 3, "each block of commands has its output"
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    with serving(database, tmp_path) as server:
        for block in blocks:
            step = Step(block["commands"].strip(), block["output"])
            printed = run(step, server.url, database, tmp_path)
            assert re.fullmatch(pattern(step.output), printed.strip()), f"{step.commands}\nprints\n{printed}"


def test_the_index_names_all() -> None:
    index = FOLDER.joinpath("README.md").read_text()
    assert re.findall(r"^\d\. \[.*?\]\((.*?)\)", index, re.MULTILINE) and set(TUTORIALS) == set(
        re.findall(r"^\d\. \[.*?\]\((.*?)\)", index, re.MULTILINE)
    )
