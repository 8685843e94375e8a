"""The lines in which two texts differ, with some lines around them."""

from __future__ import annotations

from difflib import unified_diff
from typing import NamedTuple


class DifferenceLine(NamedTuple):
    """A line. mark: `Added`, `Removed`, or empty for one that both texts have."""

    mark: str
    text: str


_MARKS = {"+": "Added", "-": "Removed", " ": ""}


def difference_lines(before: str, after: str) -> list[DifferenceLine]:
    """The lines that differ; empty for equal texts. Cost: quadratic in the lines that differ."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    return [DifferenceLine(_MARKS.get(line[:1], "…"), line[1:] if line[:1] in _MARKS else "") for line in lines]
