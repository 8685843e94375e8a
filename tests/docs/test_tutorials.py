"""Tutorials do what they say: their commands run against an empty registry, and their outputs are compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.guides import followed
from tests.support.serving import ROOT

FOLDER = ROOT / "docs" / "tutorials"
TUTORIALS = sorted(path.name for path in FOLDER.glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial(name: str, tmp_path: Path) -> None:
    with followed(f"tutorials/{name}", tmp_path) as guide:
        assert len(guide.left) > 3
        assert all(block.output for block in guide.left), "each block of commands has its output"
        guide.serve()
        guide.follow()


def test_the_index_names_all() -> None:
    index = FOLDER.joinpath("README.md").read_text()
    assert re.findall(r"^\d\. \[.*?\]\((.*?)\)", index, re.MULTILINE) and set(TUTORIALS) == set(
        re.findall(r"^\d\. \[.*?\]\((.*?)\)", index, re.MULTILINE)
    )
