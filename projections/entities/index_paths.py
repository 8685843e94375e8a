"""The numbers of the paths of each type, which stand for them in the attribute index.

A path that no entity has any more keeps its number until the next rebuild.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from annals.projections.database.drivers import Database
from annals.projections.entities.tables import ReadModelTables

#: SQL for the number of a path; its parameters are the type and the path.
PATH_NUMBER: Final = "(SELECT number FROM attribute_path WHERE type = ? AND path = ?)"

#: A type and a path.
TypedPath = tuple[str, str]


class IndexPaths:
    """The numbered paths of a set of tables."""

    def __init__(self, tables: ReadModelTables) -> None:
        self._table = tables.path

    def numbers(self, db: Database, paths: Iterable[TypedPath]) -> dict[TypedPath, int]:
        """The numbers of some paths; one without a number gets the next."""
        missing = set(paths)
        numbers = self._stored_numbers(db, missing)
        missing -= numbers.keys()
        if missing:
            (last,) = db.one(f"SELECT coalesce(max(number), 0) FROM {self._table.name}")
            new_numbers = {path: number for number, path in enumerate(sorted(missing), last + 1)}
            db.insert(self._table, [(number, *path) for path, number in new_numbers.items()])
            numbers |= new_numbers
        return numbers

    def _stored_numbers(self, db: Database, paths: Collection[TypedPath]) -> dict[TypedPath, int]:
        numbers: dict[TypedPath, int] = {}
        for type in {type for type, _ in paths}:
            names = [path for path_type, path in paths if path_type == type]
            rows = find_paths(db, type, names, self._table.name)
            numbers |= {(type, path): number for number, path in rows}
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
