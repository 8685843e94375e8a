"""The lines in which two texts differ, with some lines around them."""

from __future__ import annotations

from difflib import unified_diff
from typing import Final, NamedTuple

#: Texts with more lines are not compared, because the cost is quadratic; and the most lines of a difference.
MAX_COMPARED: Final = 20_000
MAX_SHOWN: Final = 2_000
_MARKS: Final = {"+": "Added", "-": "Removed", " ": ""}


class DifferenceLine(NamedTuple):
    """A line. mark: `Added`, `Removed`, or empty for one that both texts have."""

    mark: str
    text: str


class DefinitionDifference(NamedTuple):
    """lines: the first ones; empty for equal texts. left_out: how many more there are.

    is_too_long: the texts were not compared.
    """

    lines: list[DifferenceLine]
    left_out: int = 0
    is_too_long: bool = False


def difference(before: str, after: str) -> DefinitionDifference:
    """The lines that differ. Cost: quadratic in the lines that differ, up to MAX_COMPARED."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MAX_COMPARED:
        return DefinitionDifference([], is_too_long=True)
    lines = list(unified_diff(old, new, lineterm="", n=2))[2:]
    shown = [
        DifferenceLine(_MARKS.get(line[:1], "…"), line[1:] if line[:1] in _MARKS else "") for line in lines[:MAX_SHOWN]
    ]
    return DefinitionDifference(shown, max(len(lines) - MAX_SHOWN, 0))
