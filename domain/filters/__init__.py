"""Filter and sort expressions, parsed into small syntax trees.

A filter is an OR of conjunctions. Each expression of a conjunction is about one entity type: the first steps of its
path (plural names, `versions`) lead to that type, the others to an attribute. `meta` is part of its Resource.
Evaluation in SQL does not belong here. Begin with `syntax.py`.
Spec: core 1.0-rc4, "Filter Flag", "Sort Flag", "Dot-Notation in Filters".
"""

from annals.domain.filters.parser import EXCLUDE_ALL, parse_filter, parse_sort
from annals.domain.filters.syntax import (
    Conjunction,
    DerivedAttribute,
    EntityFilter,
    FilterExpression,
    FilterValue,
    Operator,
    PathScope,
    Sort,
    depth,
    is_above,
    remaining_filters,
)

__all__ = [
    "EXCLUDE_ALL",
    "Conjunction",
    "DerivedAttribute",
    "EntityFilter",
    "FilterExpression",
    "FilterValue",
    "Operator",
    "PathScope",
    "Sort",
    "depth",
    "is_above",
    "parse_filter",
    "parse_sort",
    "remaining_filters",
]
