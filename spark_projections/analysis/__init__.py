"""The log as tables for analysts: interactions, events, entities and their history, versions, changes, deprecations.

Every table is a function of a log DataFrame (see `log_schema.LOG_SCHEMA`) of whole interactions, from the first
position on without a gap. docs/guides/spark/analysts.md describes the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from annals.spark_projections.analysis.changes import changes
from annals.spark_projections.analysis.deprecations import deprecations
from annals.spark_projections.analysis.events import events, interactions
from annals.spark_projections.analysis.states import entities, entities_history
from annals.spark_projections.analysis.versions import versions
from annals.spark_projections.events import messagecatalog_events, schemaregistry_events, xregistry_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The tables by the names of their views.
TABLES: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    table.__name__: table
    for table in (
        *(interactions, events, entities, entities_history, versions, changes, deprecations),
        *(xregistry_events, schemaregistry_events, messagecatalog_events),
    )
}

__all__ = ["TABLES", *TABLES, "register"]


def register(spark: SparkSession, log: DataFrame, changed: bool = True) -> None:
    """Registers every table as a temporary view of its name. Each query that reads a view computes it again.

    changed: whether xRegistry events list the changed attributes.
    Sets the session's time zone to UTC, the time zone of the log, so days and months in queries are those of UTC.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    overridden = {xregistry_events.__name__: partial(xregistry_events, changed=changed)}
    for name, table in (TABLES | overridden).items():
        table(log).createOrReplaceTempView(name)
