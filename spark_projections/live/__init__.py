"""Analysis tables that follow a growing log: the current `entities`, and all `changes`.

    live.follow(spark.readStream.format("annals").load(url), folder, checkpoint, whole_interactions_only=True)
    live.register(spark, folder)

Both are in one folder as immutable Parquet files; the newest file in `manifest` names those that are valid. So a reader
sees the tables at one position of the log or at the next, never in between. docs/guides/spark/analysts.md says more.
"""

from __future__ import annotations

from annals.spark_projections.live.follow import follow
from annals.spark_projections.live.manifest import LiveTablesError
from annals.spark_projections.live.tables import changes, entities, position, register

__all__ = ["LiveTablesError", "changes", "entities", "follow", "position", "register"]
