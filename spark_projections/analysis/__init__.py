"""The log as tables for questions: what happened, what lives and lived, and what changed, each a row of its own.

Every table is a function of a log DataFrame (`spark_projections.schema.LOG_SCHEMA`): whole interactions from the first
position on, without a gap. docs/analysts.md says what the columns hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from spark_projections.analysis.changes import changes
from spark_projections.analysis.deprecations import deprecations
from spark_projections.analysis.facts import events, interactions
from spark_projections.analysis.states import entities, entities_history
from spark_projections.analysis.versions import versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The tables by the names of their views.
TABLES: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    table.__name__: table
    for table in (interactions, events, entities, entities_history, versions, changes, deprecations)
}

__all__ = ["TABLES", *TABLES, "register"]


def register(spark: SparkSession, log: DataFrame) -> None:
    """Makes every table a temporary view of its name, which is worked out anew by each query that reads it.

    The days and months of the session's queries become those of UTC, as the log's own times are.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, table in TABLES.items():
        table(log).createOrReplaceTempView(name)
