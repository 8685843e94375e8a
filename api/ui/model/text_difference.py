"""The lines in which two texts differ, with some lines around them."""

from __future__ import annotations

from difflib import unified_diff
from typing import Final, NamedTuple

from annals.api.ui.json_layout import MAX_LINES, indent, line_count
from annals.domain.values.json_text import Json

#: Texts with more lines are not compared, because the cost is quadratic; and the most lines of a difference.
MAX_COMPARED: Final = MAX_LINES
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


def value_difference(before: str, after: Json) -> DefinitionDifference:
    """The lines in which an indented value differs from a text. A value with too many lines is not indented first."""
    if line_count(after) > MAX_COMPARED:
        return DefinitionDifference([], is_too_long=True)
    return difference(before, indent(after))


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
