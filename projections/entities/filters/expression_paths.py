"""The paths in the attribute index that an expression of a filter is about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Final, NamedTuple

from annals.domain.filters import FilterExpression, Operator
from annals.domain.values.dot_path import PathWildcard, Step
from annals.projections.database.drivers import Database
from annals.projections.entities.index_paths import find_paths, paths_between
from annals.projections.entities.leaves import CUT_LENGTH, PATH_LIMIT, is_cut_path, path_key, path_step, path_text

_MEMBER_PATTERN: Final = r"""(?:\.[^.\[\]'"*]+|\['(?:[^']|'')*'\]|\["(?:[^"\\]|\\.)*"\])"""
_WILDCARD_PATTERNS: Final = {PathWildcard.MEMBER: _MEMBER_PATTERN, PathWildcard.ITEM: r"\[[0-9]+\]"}
_NESTED_PATTERN: Final = r"(?:[.\[].*)?"
#: Above all that follows a common beginning of paths.
_LAST: Final = "\U0010ffff" * PATH_LIMIT

NumberedPath = tuple[int, str]


class ExpressionPaths(NamedTuple):
    """The numbers of an expression's paths. cut: of paths that the index has cut before the part that decides."""

    whole: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()


def find_expression_paths(db: Database, expression: FilterExpression) -> ExpressionPaths:
    """The paths of the leaves that an expression is about. Cost: two or three ranges of the numbered paths."""
    type, asks_for_presence = expression.type, expression.operator.positive is Operator.PRESENT
    fixed_path = path_text(tuple(takewhile(lambda step: not isinstance(step, PathWildcard), expression.path)))
    if expression.has_wildcards or (asks_for_presence and not expression.is_scalar and len(fixed_path) >= CUT_LENGTH):
        beginning = fixed_path[:CUT_LENGTH]
        candidates = paths_between(db, type, beginning, beginning + _LAST)
        return _matching_paths(candidates, _path_pattern(expression.path, with_nested=asks_for_presence))
    own = find_paths(db, type, [path_key(fixed_path)])
    if not asks_for_presence or expression.is_scalar:
        return ExpressionPaths(_numbers(own))
    members = paths_between(db, type, f"{fixed_path}.", f"{fixed_path}/")
    items = paths_between(db, type, f"{fixed_path}[", f"{fixed_path}\\")
    return ExpressionPaths(_numbers((*own, *members, *items)))


def _matching_paths(candidates: Iterable[NumberedPath], pattern: re.Pattern[str]) -> ExpressionPaths:
    whole, cut = [], []
    for number, path in candidates:
        if is_cut_path(path):
            cut.append(number)
        elif pattern.match(path):
            whole.append(number)
    return ExpressionPaths(tuple(whole), tuple(cut))


def _path_pattern(path: Iterable[Step], *, with_nested: bool) -> re.Pattern[str]:
    steps = "".join(_step_pattern(index, step) for index, step in enumerate(path))
    return re.compile(steps + (_NESTED_PATTERN if with_nested else "") + r"\Z", re.DOTALL)


def _step_pattern(index: int, step: Step) -> str:
    if isinstance(step, PathWildcard):
        return _WILDCARD_PATTERNS[step] if index else r"[^.\[]+" if step is PathWildcard.MEMBER else "(?!)"
    return re.escape(path_text([step]) if not index else f"[{step}]" if isinstance(step, int) else path_step(step))


def _numbers(paths: Iterable[NumberedPath]) -> tuple[int, ...]:
    return tuple(number for number, _ in paths)
