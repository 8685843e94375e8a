"""Fragments of SQL with their parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class SqlFragment(NamedTuple):
    """A text with `?` for parameters, and the parameters in their order."""

    text: str
    values: tuple[Any, ...] = ()

    def wrap(self, text: str) -> SqlFragment:
        """The fragment inserted at the `{}` of a text."""
        return SqlFragment(text.replace("{}", self.text), self.values)


#: A condition that is true of every row.
ALWAYS = SqlFragment("1 = 1")


def join_fragments(separator: str, fragments: Iterable[SqlFragment]) -> SqlFragment:
    """One fragment of several, with their parameters in order."""
    parts = tuple(fragments)
    return SqlFragment(
        separator.join(fragment.text for fragment in parts),
        tuple(value for fragment in parts for value in fragment.values),
    )


def and_(*conditions: SqlFragment) -> SqlFragment:
    """The conditions joined by AND."""
    return join_fragments(" AND ", conditions)


def or_(conditions: Iterable[SqlFragment]) -> SqlFragment:
    """The conditions joined by OR, in parentheses."""
    return join_fragments(" OR ", conditions).wrap("({})")


def between(column: str, low: str, high: str) -> SqlFragment:
    """The condition that a column is between two keys, both exclusive."""
    return SqlFragment(f"{column} > ? AND {column} < ?", (low, high))
