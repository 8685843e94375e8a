"""Merges two changes of a text by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from annals.api.ui.compare.line_difference import line_runs

#: Longer texts are left to a person.
_MAX_LINES: Final = 5000


class _Change(NamedTuple):
    """New lines in place of the lines from one (inclusive) to another (exclusive)."""

    start: int
    end: int
    lines: tuple[str, ...]


def merge_lines(base: str, theirs: str, yours: str) -> str | None:
    """A text with both changes; None if they touch the same or neighbouring lines, or the texts are very long."""
    lines, their_lines, your_lines = (text.splitlines(keepends=True) for text in (base, theirs, yours))
    if max(map(len, (lines, their_lines, your_lines))) > _MAX_LINES:
        return None
    merged: list[str] = []
    end = -1
    for change in sorted({*_changes(lines, their_lines), *_changes(lines, your_lines)}):
        if change.start <= end:
            return None
        merged += [*lines[max(end, 0) : change.start], *change.lines]
        end = change.end
    return "".join([*merged, *lines[max(end, 0) :]])


def _changes(before: Sequence[str], after: Sequence[str]) -> list[_Change]:
    return [
        _Change(run.left.start, run.left.stop, tuple(after[run.right.start : run.right.stop]))
        for run in line_runs(before, after)
        if not run.is_equal
    ]
