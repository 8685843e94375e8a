"""Merges two changes of a text by line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

#: Comparing longer texts would take too long.
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
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        _Change(start, end, tuple(after[new_start:new_end]))
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]
