"""Entities with only the values that clients set: without values that the model or a Group filled in.

A registry that imports them fills in the same defaults again, and knows that they are defaults (MS-16).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from annals.domain.registry.explicit_values import DEFAULT_MARKS, explicit_values
from annals.domain.values.json_text import dumps, loads
from annals.projections.entities.rows import EntityRow


def without_defaults(rows: Iterable[EntityRow]) -> Iterator[EntityRow]:
    """The rows, with Versions reduced to explicit values.

    Only Versions record their defaults, and only document views show Versions without the Resource's copy of them.
    """
    return map(_without_defaults, rows)


def _without_defaults(row: EntityRow) -> EntityRow:
    default_marks = loads(row.private).get(DEFAULT_MARKS)
    if not default_marks:
        return row
    return row._replace(attributes=dumps(explicit_values(loads(row.attributes), default_marks)).decode())
