"""docs/guides/spark/analysts.md: its programs draw the plots that it shows from the registry that it describes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark_projections.analysis.test_analysts import GUIDE, analyst
from tests.support.serving import ROOT

__all__ = ["analyst"]

pytest.importorskip("matplotlib", reason="the extra plots is not installed")

_PROGRAMS = re.findall(r"```python\n([^`]*savefig\(\"([\w.]+)\"[^`]*)```\n\n!\[.*?\]\((.*?)\)", GUIDE)
_TEXT = "{http://www.w3.org/2000/svg}text"


def texts_of(plot: Path) -> list[str]:
    """Every text of a plot, in the order of drawing; its position depends on matplotlib."""
    return ["".join(text.itertext()) for text in ET.parse(plot).iter(_TEXT)]


@pytest.mark.parametrize(("program", "name", "shown"), _PROGRAMS, ids=[name for _, name, _ in _PROGRAMS])
def test_a_plot_of_the_guide(
    analyst: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, name: str, shown: str
) -> None:
    monkeypatch.setenv("MPLBACKEND", "svg")
    monkeypatch.chdir(tmp_path)
    exec(program, {"spark": analyst})
    assert shown == f"plots/{name}"
    assert texts_of(tmp_path / name) == texts_of(ROOT / "docs" / "guides" / "spark" / shown) != []


def test_both_questions_are_drawn() -> None:
    """The third program of the guide opens the log; `test_the_same_in_python` runs it."""
    assert len(_PROGRAMS) == 2 == GUIDE.count("```python") - 1
