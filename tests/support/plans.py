"""The query plans of readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from annals.projections.database import drivers
from annals.projections.database.connections import PLANNER_SETTINGS
from tests.support.registries.recorded import Registry


class Explained:
    """A reader's connection that records the plans of queries, and returns no rows."""

    def __init__(self, db: Any, sqlite: bool) -> None:
        self._db = db
        self.is_postgresql = not sqlite
        self._explain = "EXPLAIN QUERY PLAN " if sqlite else "EXPLAIN "
        self.plans: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def stream(self, sql: str, values: Any = ()) -> Iterator[Any]:
        self.plans.append("; ".join(row[-1] for row in self._db.all(self._explain + sql, values)))
        return iter(())


@contextmanager
def explained(registry: Registry) -> Iterator[Explained]:
    with registry.store.engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if not sqlite:
            for setting in PLANNER_SETTINGS:
                connection.exec_driver_sql(setting)
        yield Explained(drivers.database_of(connection), sqlite)
