"""Compiles one expression of a filter to conditions on the leaves in the attribute index.

The index holds the beginnings of texts and of paths. Where that leaves an expression undecided, the few entities in
doubt are read and `by_document` decides. It also decides for entities that the index omits, and for those that read
differently from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from annals.domain.filters import FilterExpression, FilterValue
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import matches
from annals.projections.entities.filters.expression_paths import ExpressionPaths, find_expression_paths
from annals.projections.entities.filters.omitted_entities import OmittedEntities
from annals.projections.entities.filters.row_overrides import RowOverrides
from annals.projections.entities.filters.sql import SqlFragment, and_, entities_by_key, in_list
from annals.projections.entities.filters.value_conditions import DrivingRank, ValueConditions, value_conditions
from annals.projections.entities.id_keys import id_key_bound
from annals.projections.entities.rows import EntityRow, may_contain, stored_row
from annals.projections.entities.visibility import Visibility

#: Characters that both JSON and case folding leave unchanged.
_PLAIN_TEXT: Final = re.compile(r"[a-z0-9 ._:-]+")


@dataclass(frozen=True, slots=True)
class LeafConditions:
    """What the leaves of the entities are that meet an expression, ignoring its negation.

    paths: numbers. additional_keys: id keys of entities that meet it and that the leaves do not find.
    finds_keys_twice: whether two leaves may find one entity, or a leaf an entity of the additional keys.
    """

    paths: tuple[int, ...]
    values: ValueConditions
    additional_keys: tuple[str, ...] = ()
    finds_keys_twice: bool = False


class LeafConditionCompiler:
    """Compiles expressions, each once. base_url, key_range, overrides, visibility: see `by_index.FilterCompiler`."""

    def __init__(
        self,
        db: Database,
        base_url: str,
        key_range: tuple[str, str],
        overrides: RowOverrides | None,
        omitted: OmittedEntities,
        visibility: Visibility,
    ) -> None:
        self._db = db
        self._base_url = base_url
        self._key_range = key_range
        self._overrides = overrides
        self._omitted = omitted
        self._visibility = visibility
        self._compiled: dict[FilterExpression, LeafConditions] = {}
        self._paths: dict[FilterExpression, ExpressionPaths] = {}

    def rank(self, expression: FilterExpression) -> DrivingRank:
        """By how few entities it is likely to find."""
        if expression.operator.is_negative:
            return DrivingRank.NEGATION
        return DrivingRank.XID if expression.derived_attribute else self._values(expression).rank

    def needs_ranges(self, expression: FilterExpression) -> bool:
        """Whether the index has no single values to look up for an expression."""
        if expression.derived_attribute:
            return False
        return bool(self._values(expression).ranges and self._paths_of(expression).whole)

    def has_more_leaves(self, expression: FilterExpression, number: int) -> bool:
        """Whether the index has more leaves of an expression's paths than a number. Cost: O(number)."""
        leaves = SqlFragment("SELECT 1 FROM attribute AS a WHERE 1 = 1")
        leaves = and_(leaves, path_condition(self._db, self._paths_of(expression).whole))
        return bool(self._db.all(*leaves.wrap(f"{{}} LIMIT 1 OFFSET {number}")))

    def conditions(self, expression: FilterExpression) -> LeafConditions:
        """The leaf conditions of an expression; entities in doubt are decided at the first call."""
        conditions = self._compiled.get(expression)
        if conditions is None:
            conditions = self._compiled[expression] = self._compile(expression)
        return conditions

    def _compile(self, expression: FilterExpression) -> LeafConditions:
        if expression.derived_attribute:
            return LeafConditions((), ValueConditions())
        paths, values = self._paths_of(expression), self._values(expression)
        additional_keys = [
            *self._decide_doubtful(expression, paths.whole, values.doubtful),
            *self._decide_doubtful(expression, paths.cut, values.possible),
        ]
        if self._overrides:
            changed_keys = {*self._overrides.changed_keys_of_type(expression.type)}
            additional_keys = [key for key in additional_keys if key not in changed_keys]
            additional_keys += self._matching_keys(expression, self._overrides.rows_of_type(expression.type))
        additional_keys += self._matching_keys(expression, self._omitted.rows(expression.type))
        finds_keys_twice = len(paths.whole) > 1 or bool(paths.cut)
        return LeafConditions(paths.whole, values, tuple(dict.fromkeys(additional_keys)), finds_keys_twice)

    def _paths_of(self, expression: FilterExpression) -> ExpressionPaths:
        if expression not in self._paths:
            self._paths[expression] = find_expression_paths(self._db, expression)
        return self._paths[expression]

    def _values(self, expression: FilterExpression) -> ValueConditions:
        return value_conditions(expression, self._db.like_condition)

    def _decide_doubtful(
        self, expression: FilterExpression, paths: Sequence[int], doubtful_condition: SqlFragment | None
    ) -> list[str]:
        """The keys of the entities in doubt that meet the positive form of an expression."""
        if not paths or doubtful_condition is None:
            return []
        low, high = (id_key_bound(expression.type, bound) for bound in self._key_range)
        doubtful_keys = and_(
            SqlFragment("SELECT DISTINCT a.id_key FROM attribute AS a WHERE 1 = 1"),
            path_condition(self._db, paths),
            doubtful_condition,
            self._visibility.id_keys(self._db, "a.id_key", expression.type, low, high),
        )
        rows = self._db.stream(*entities_by_key(expression.type, doubtful_keys))
        hint = _hint(expression.value)
        return self._matching_keys(expression, map(stored_row, (row for row in rows if may_contain(row, hint))))

    def _matching_keys(self, expression: FilterExpression, rows: Iterable[EntityRow]) -> list[str]:
        """The keys of the rows of an expression's type that meet its positive form."""
        is_negative = expression.operator.is_negative
        return [
            row.id_key
            for row in rows
            if row.type == expression.type and matches(expression, row, self._base_url) is not is_negative
        ]


def path_condition(db: Database, paths: Sequence[int]) -> SqlFragment:
    """A condition on `a`: it is a leaf of one of some paths, of which there is at least one."""
    return SqlFragment("a.path = ?", (paths[0],)) if len(paths) == 1 else in_list(db, "a.path", paths)


def _hint(filter_value: FilterValue) -> str:
    """A text that the JSON of every entity contains that matches a filter's pattern; empty if none is known."""
    pieces = filter_value.pieces if filter_value.has_wildcards else ()
    return max((part for piece in pieces for part in _PLAIN_TEXT.findall(piece)), key=len, default="")
