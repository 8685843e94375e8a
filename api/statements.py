"""Entities as their clients stated them: without the values that the model or a Group filled in.

Whoever takes these in fills the same defaults in again, and knows them for defaults (MS-16).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from domain.jsontext import dumps, loads
from domain.stated import DEFAULTS, stated
from projections.entities.rows import Row


def statements(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, Versions without their defaults. Only Versions know theirs, and only document views show them alone."""
    return map(_statement, rows)


def _statement(row: Row) -> Row:
    marks = loads(row.private).get(DEFAULTS)
    if not marks:
        return row
    return row._replace(attributes=dumps(stated(loads(row.attributes), marks)).decode())
