"""The entities that refer to an entity are found by ranges of one index, now and as of a moment."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.projections.database import drivers
from annals.projections.entities.references import StoredReferences
from annals.projections.entities.visibility import EVERYTHING
from tests.support.registries.in_process import create, serving

GROUP = "/messagegroups/g"
BASE = f"{GROUP}/messages/base"


class ExplainedReads:
    """A connection that explains each query, and counts the rows of its result."""

    def __init__(self, db: Any, explain: str) -> None:
        self._db, self._explain = db, explain
        self.plans: list[str] = []
        self.rows: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def all(self, sql: str, values: Any = ()) -> list[Any]:
        self.plans.append("; ".join(str(row[-1]) for row in self._db.all(f"{self._explain} {sql}", values)))
        found: list[Any] = self._db.all(sql, values)
        self.rows.append(len(found))
        return found


@pytest.mark.parametrize("below", [False, True], ids=["itself", "and below"])
@pytest.mark.parametrize("is_past", [False, True], ids=["now", "then"])
def test_referrers_are_ranges_of_the_index(store_url: str, is_past: bool, below: bool) -> None:
    # UI-77
    create(store_url, default_source())
    with serving(store_url) as api:
        api.done("PUT", BASE, {})
        for number in range(40):
            api.done("PUT", f"{GROUP}/messages/other{number}", {"name": "n"})
        for number in range(3):
            api.done("PUT", f"{GROUP}/messages/derived{number}", {"basemessageuri": BASE})
        then = api.get("/-/log/head")["position"]
        for number in range(3):
            api.done("PUT", f"{GROUP}/messages/derived{number}", {"name": "free"})
            api.done("PUT", f"{GROUP}/messages/later{number}", {"basemessageuri": BASE})
    with closing(Store(store_url)) as store, store.engine.connect() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        if not is_sqlite:
            connection.exec_driver_sql("SET enable_seqscan = off")  # otherwise PostgreSQL scans a small table
        db = ExplainedReads(drivers.database_of(connection), "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN")
        stored = StoredReferences(db, EVERYTHING, then if is_past else None)
        found = [row.id for row in stored.rows(BASE, below=below)]
        first = "derived" if is_past else "later"
        assert found == [f"{first}{number}" for number in range(3)]
        assert db.rows == [3, 3], "it reads what refers to the entity, and nothing else"
        for plan in db.plans:
            assert "SCAN reference" not in plan and "SCAN entity" not in plan and "Seq Scan" not in plan, plan
        assert ("PRIMARY KEY" if is_sqlite else "reference_pkey") in db.plans[0], db.plans[0]
