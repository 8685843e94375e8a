"""The table of schemas: each look-up is one index probe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from annals.api.compat.confluent.paths import BASE
from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.projections.database import drivers
from annals.projections.entities import schema_version_rows, schema_versions
from annals.projections.entities.schema_versions import StoredSchemas, VersionsOf
from tests.support.registries.in_process import create, serving

KEY = 64 * "a"
LOOKUPS: dict[str, tuple[Callable[[StoredSchemas], Any], str]] = {
    "versions": (lambda schemas: schemas.versions("default", "s"), "schema_version_by_subject"),
    "newest versions": (lambda schemas: schemas.subject_versions([("default", "s")]), "schema_version_by_subject"),
    "version": (lambda schemas: VersionsOf(schemas, "default", "s").with_number(1), "schema_version_by_subject"),
    "versions with a member": (
        lambda schemas: VersionsOf(schemas, "default", "s").with_key_or_member(KEY, ["references"]),
        "schema_version_by_subject",
    ),
    "key": (lambda schemas: schemas.by_key(KEY), "schema_version_by_key"),
    "id": (lambda schemas: schemas.by_id(1), "schema_version_by_id"),
    "guid": (lambda schemas: schemas.by_guid("g"), "schema_version_by_guid"),
    "the sole id of a key": (lambda schemas: schemas.sole_ids([KEY]), "schema_version_by_key"),
    "ids of a key": (lambda schemas: schemas.ids_of_keys([KEY]), "schema_version_by_key"),
    "highest id": (lambda schemas: schemas.highest_id(), "schema_version_by_id"),
}


class ExplainedQueries:
    """A connection that explains each query before it runs it."""

    def __init__(self, db: Any, explain: str) -> None:
        self._db, self._explain = db, explain
        self.plans: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def all(self, sql: str, values: Any = ()) -> list[Any]:
        self.plans.append("; ".join(str(row[-1]) for row in self._db.all(f"{self._explain} {sql}", values)))
        found: list[Any] = self._db.all(sql, values)
        return found

    def one(self, sql: str, values: Any = ()) -> Any:
        self.all(sql, values)
        return self._db.one(sql, values)


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("position", [None, 1], ids=["now", "then"])
def test_look_ups_are_index_probes(store_url: str, name: str, position: int | None) -> None:
    # CSR-421
    create(store_url, default_source())
    look_up, index = LOOKUPS[name]
    with closing(Store(store_url)) as store, store.engine.connect() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
        if not is_sqlite:
            connection.exec_driver_sql("SET enable_seqscan = off")  # otherwise PostgreSQL scans a small table
        db = ExplainedQueries(drivers.database_of(connection), "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN")
        look_up(StoredSchemas(db, position))
        assert db.plans and all(index in plan for plan in db.plans), db.plans


def test_subjects_with_one_hash_are_read_together(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # CSR-421: each gets its own versions, once
    for module in (schema_versions, schema_version_rows):
        monkeypatch.setattr(module, "subject_hash", lambda path: 1)
    create(store_url, default_source())
    with serving(store_url) as api:
        for name in ("a", "b", "b"):
            api.done("POST", f"{BASE}/subjects/{name}/versions", {"schema": f'"{"int" if name == "a" else "long"}"'})
        api.done("POST", f"{BASE}/subjects/b/versions?force=true", {"schema": '"string"'})
    with closing(Store(store_url)) as store, store.engine.connect() as connection:
        found = StoredSchemas(drivers.database_of(connection)).subject_versions([("default", "a"), ("default", "b")])
    assert {name: [one.number for one in versions.all] for (_, name), versions in found.items()} == {
        "a": [1],
        "b": [1, 2],
    }
