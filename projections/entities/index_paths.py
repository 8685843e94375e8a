"""The numbers of the paths of each type, which stand for them in the attribute index.

A path that no entity has any more keeps its number until the next rebuild.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from annals.projections.database.drivers import Database
from annals.projections.entities.tables import ReadModelTables

#: SQL for the number of a path; its parameters are the type and the path.
PATH_NUMBER: Final = "(SELECT number FROM attribute_path WHERE type = ? AND path = ?)"


class IndexPaths:
    """The numbered paths of a set of tables."""

    def __init__(self, tables: ReadModelTables) -> None:
        self._table = tables.path

    def numbers(self, db: Database, paths: Mapping[str, Collection[str]]) -> dict[str, dict[str, int]]:
        """The numbers of some paths of each type; one without a number gets the next."""
        numbers = {
            type: {path: number for number, path in find_paths(db, type, type_paths, self._table.name)}
            for type, type_paths in paths.items()
            if type_paths
        }
        missing = [(type, path) for type in numbers for path in sorted(set(paths[type]) - numbers[type].keys())]
        if missing:
            (last,) = db.one(f"SELECT coalesce(max(number), 0) FROM {self._table.name}")
            rows = [(number, type, path) for number, (type, path) in enumerate(missing, last + 1)]
            db.insert(self._table, rows)
            for number, type, path in rows:
                numbers[type][path] = number
        return numbers


def find_paths(
    db: Database, type: str, paths: Collection[str], table: str = "attribute_path"
) -> Sequence[tuple[int, str]]:
    """The numbers and paths of those paths of a type that have a number."""
    statement = f"SELECT number, path FROM {table} WHERE type = ? AND {db.in_list('path')}"
    return db.all(statement, (type, db.list_parameter(paths)))


def paths_between(db: Database, type: str, low: str, high: str) -> Sequence[tuple[int, str]]:
    """The numbers and paths of a type from one path to another, without the last."""
    return db.all(
        "SELECT number, path FROM attribute_path WHERE type = ? AND path >= ? AND path < ?", (type, low, high)
    )
