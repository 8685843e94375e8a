"""Spark computes the same publications for the legacy APIs from a log as the registry itself."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession
from sqlalchemy import select

from annals.commands.store.log import Store
from annals.projections.entities.tables import tables
from annals.projections.entities.view_pool import ViewPool
from annals.projections.log.table_rows import table_rows
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.read_model.load import precomputed_rows
from tests.projections.compat.test_properties import STORY, check


def test_publications_are_those_of_the_registry(spark: SparkSession, store_url: str, tmp_path: Path) -> None:
    # LEG-606, LEG-707: existing publications, deleted ones, and those with their own URIs
    check(store_url, STORY)
    with closing(ViewPool(store_url)) as readers, readers.view() as view:
        found = [
            row
            for interaction in view.log.interactions(0, 1000)
            for row in table_rows(interaction, view.log.events(interaction.first, interaction.last))
        ]
    log = spark.createDataFrame(found, LOG_SCHEMA).repartition(5)
    with closing(Store(store_url)) as store:
        with store.engine.begin() as connection:
            tables("_new").create_bare(connection)
        precomputed_rows(log, len(found), (tmp_path / "stage").as_uri()).insert(store.engine, tables("_new"))
        with store.engine.connect() as connection:
            own, made = (
                sorted(map(tuple, connection.execute(select(each.published))), key=str)
                for each in (tables(), tables("_new"))
            )
    assert own
    assert made == own
