"""Dot notation: the path of an attribute, as steps and as text.

A step is a member's name, an array index, or one of the two wildcards of filters.
Spec: core 1.0-rc4, "xRegistry Dot (`.`) Notation".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final


class PathWildcard(Enum):
    """`.*` is any member of an object or map, `[*]` any item of an array; `['*']` is neither, but a name."""

    MEMBER = ".*"
    ITEM = "[*]"


Step = str | int | PathWildcard

_STEP: Final = re.compile(
    r"""(?P<dot>\.?)(?P<name>[^.\[\]'"]+)
      | \[(?P<index>[0-9]+)\]
      | \[(?P<item>\*)\]
      | \.?\['(?P<single>(?:[^'\\]|\\.)*)'\]
      | \.?\["(?P<double>(?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE | re.DOTALL,
)
_BARE_NAME: Final = re.compile(r"(?![0-9]+\Z)[^.\[\]'\"\\*\s]+\Z")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=1024)
def parse(text: str, wildcards: bool = False) -> tuple[Step, ...]:
    """The steps of a path; `a['b.c'][0]` results in `("a", "b.c", 0)`.

    wildcards: whether `.*` and `[*]` are allowed.
    Raises: ValueError, whose message says what is wrong and where.
    """
    steps: list[Step] = []
    index = 0
    while index < len(text):
        match = _STEP.match(text, index)
        # Only the first name may lack its dot: in "a['b']c" the dot before c is missing.
        if match is None or (index and match["name"] and not match["dot"]):
            raise ValueError(f"unexpected {text[index]!r} at character {index + 1} of {text!r}")
        steps.append(_parse_step(match))
        index = match.end()
    if not steps:
        raise ValueError("the path is empty")
    if not wildcards and any(isinstance(step, PathWildcard) for step in steps):
        raise ValueError(f"wildcards are not allowed in {text!r}")
    return tuple(steps)


def text(steps: Sequence[str | int | PathWildcard]) -> str:
    """The inverse of `parse`: names that could be read as an operator or an index are quoted."""
    parts = [_step_text(step) for step in steps]
    return "".join(parts).removeprefix(".")


def find(value: Any, steps: Sequence[Step]) -> Any:
    """The value at a path without wildcards; None if there is none."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _parse_step(match: re.Match[str]) -> Step:
    if match["index"]:
        return int(match["index"])
    if match["item"]:
        return PathWildcard.ITEM
    if name := match["name"]:
        if "*" in name and name != "*":
            raise ValueError(f"a star has to be a step of its own or in quotes, not in {name!r}")
        return PathWildcard.MEMBER if name == "*" else name
    return _ESCAPED.sub(r"\1", match["single"] if match["single"] is not None else match["double"])


def _step_text(step: Step) -> str:
    if isinstance(step, PathWildcard):
        return step.value
    if isinstance(step, int):
        return f"[{step}]"
    if _BARE_NAME.match(step):
        return f".{step}"
    return "['" + step.replace("\\", "\\\\").replace("'", "\\'") + "']"
