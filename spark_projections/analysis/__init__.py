"""The log as tables for questions: what happened, what lives and lived, and what changed, each a row of its own.

Every table is a function of a log DataFrame (see `log_schema.LOG_SCHEMA`): whole interactions from the first position
on, without a gap. docs/analysts.md says what the columns hold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from spark_projections.analysis.changes import changes
from spark_projections.analysis.deprecations import deprecations
from spark_projections.analysis.events import events, interactions
from spark_projections.analysis.states import entities, entities_history
from spark_projections.analysis.versions import versions
from spark_projections.events import xregistry_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The tables by the names of their views.
TABLES: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    table.__name__: table
    for table in (interactions, events, entities, entities_history, versions, changes, deprecations, xregistry_events)
}

__all__ = ["TABLES", *TABLES, "register"]


def register(spark: SparkSession, log: DataFrame, changed: bool = True) -> None:
    """Makes every table a temporary view of its name, which is worked out anew by each query that reads it.

    changed: whether xRegistry events say which attributes changed.
    The days and months of the session's queries become those of UTC, as the log's own times are.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    own = {xregistry_events.__name__: partial(xregistry_events, changed=changed)}
    for name, table in (TABLES | own).items():
        table(log).createOrReplaceTempView(name)
