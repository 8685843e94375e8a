"""Rows that executors load into PostgreSQL: once each, whatever Spark repeats, with numbers that all tasks agree on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import func, select

from annals.projections.entities.partition_load import LoadTarget, partition_transaction
from annals.projections.entities.tables import ReadModelTables, tables
from annals.spark_projections.read_model import load_postgres
from tests.spark_projections.test_rebuild import log_of
from tests.support.registries.recorded import Registry

pytestmark = pytest.mark.uses("Spark", "PostgreSQL")


@pytest.fixture
def registry(postgres_url: str) -> Iterator[Registry]:
    """A registry with rows in all tables but `published`, and a second set of tables, which are empty."""
    with Registry(postgres_url) as registry:
        for n in range(40):
            registry.record((f"/dirs/d{n % 30}", {"dirid": f"d{n % 30}", "name": f"n{n}", "labels": {f"l{n}": "x"}}))
        with registry.store.engine.begin() as connection:
            tables("_new").create_bare(connection)
        yield registry


def counts(registry: Registry, found: ReadModelTables) -> list[Any]:
    """The numbers of rows; a path that no entity has any more stays in the live tables only."""
    with registry.store.engine.begin() as connection:
        rows = [connection.execute(select(func.count()).select_from(table)).scalar() for table in found]
        used = connection.execute(select(func.count(func.distinct(found.attribute.c.path)))).scalar()
    return [*rows[:3], used, rows[4]]


def test_a_partition_that_spark_repeats_is_loaded_once(spark: SparkSession, registry: Registry) -> None:
    log, engine = log_of(spark, registry.store), registry.store.engine
    for _ in range(2):
        load_postgres.insert(log, 100, engine, tables("_new"), 100)
        assert counts(registry, tables("_new")) == counts(registry, tables())


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, registry: Registry) -> None:
    log, engine = log_of(spark, registry.store), registry.store.engine
    with registry.store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE attribute_new ADD CHECK (id_key <> 'd7')")
    with pytest.raises(Exception, match="CheckViolation"):
        load_postgres.insert(log, 100, engine, tables("_new"), 100)
    assert counts(registry, tables("_new"))[:3] == [0, 0, 0]


def test_tasks_agree_on_the_numbers_of_paths(registry: Registry) -> None:
    url = registry.store.engine.url.render_as_string(hide_password=False)
    target = LoadTarget(url, "_new")

    def numbers(start: int) -> dict[tuple[str, str], int]:
        with partition_transaction(target, start) as transaction:
            assert transaction is not None
            for n in range(start, start + 20):
                transaction.path_numbers.of({("dirs", f"p{n}"), ("dirs.files", f"p{n // 3}")})
            return dict(transaction.path_numbers.of(set()))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(numbers, range(0, 20, 5)))
    together: dict[tuple[str, str], int] = {}
    for each in found:
        assert all(together.get(path, number) == number for path, number in each.items())
        together |= each
    assert sorted(together.values()) == list(range(1, len(together) + 1))
