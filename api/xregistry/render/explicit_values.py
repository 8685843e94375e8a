"""Entities as their clients stated them: without the values that the model or a Group filled in.

Whoever takes these in fills the same defaults in again, and knows them for defaults (MS-16).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from domain.registry.explicit_values import DEFAULT_MARKS, explicit_values
from domain.values.json_text import dumps, loads
from projections.entities.rows import EntityRow


def without_defaults(rows: Iterable[EntityRow]) -> Iterator[EntityRow]:
    """The rows, Versions without their defaults. Only Versions know theirs, and only document views show them alone."""
    return map(_without_defaults, rows)


def _without_defaults(row: EntityRow) -> EntityRow:
    marks = loads(row.private).get(DEFAULT_MARKS)
    if not marks:
        return row
    return row._replace(attributes=dumps(explicit_values(loads(row.attributes), marks)).decode())
