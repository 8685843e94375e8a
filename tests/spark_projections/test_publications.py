"""What Spark makes of a log for the older APIs is what the registry itself has made of it."""

from __future__ import annotations

from contextlib import closing

from pyspark.sql import SparkSession
from sqlalchemy import select

from annals.commands.store.log import Store
from annals.projections.entities.rows import PUBLICATION_COLUMNS
from annals.projections.entities.tables import tables
from annals.projections.entities.view_pool import ViewPool
from annals.projections.log.table_rows import table_rows
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.read_model.published_rows import published_rows
from tests.projections.compat.test_properties import STORY, check


def test_publications_are_those_of_the_registry(spark: SparkSession, sqlite_url: str) -> None:
    # LEG-606, LEG-707: kept ones, those that are gone, and those with URIs of their own
    check(sqlite_url, STORY)
    with closing(ViewPool(sqlite_url)) as readers, readers.view() as view:
        found = [
            row
            for interaction in view.log.interactions(0, 1000)
            for row in table_rows(interaction, view.log.events(interaction.first, interaction.last))
        ]
    made = (
        published_rows(spark.createDataFrame(found, LOG_SCHEMA).repartition(5)).select(*PUBLICATION_COLUMNS).collect()
    )
    with closing(Store(sqlite_url)) as store, store.engine.connect() as connection:
        own = [tuple(row) for row in connection.execute(select(tables().published))]
    assert own
    assert sorted(map(tuple, made), key=str) == sorted(own, key=str)
