"""docs/reference/lake.md: the tables of a lake, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annals.spark_projections.lake.tables import ALL_TABLES, LakeTable
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The tables that `annals lake append` fills ([Tables for other programs](../guides/lake/README.md)). Types are Spark's.
All columns may be null. New releases only add columns, at the end of a table."""


def text() -> str:
    """The page."""
    return page("Tables of a lake", _INTRODUCTION, *(part for one in ALL_TABLES.values() for part in _table(one)))


def _table(one: LakeTable) -> Iterator[str]:
    yield f"## `{one.name}`"
    divided = f" Files are divided by `{one.partition}`." if one.partition else ""
    key = f" A later row with the same `{one.key}` replaces an earlier one." if one.key else " Rows are only added."
    order = ", ".join(f"`{name}`" for name in one.sort)
    yield f"{one.about}{key}{divided} They are sorted by {order}."
    yield table(
        ("Column", "Type", "Meaning"), ((code(column.name), column.type, column.about) for column in one.columns)
    )
