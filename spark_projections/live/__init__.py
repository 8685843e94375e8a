"""The tables of analysts that follow a log while it grows: `entities` as they are, and `changes` as they came.

    live.follow(spark.readStream.format("annals").load(url), to, checkpoint, whole=True)
    live.register(spark, to)

Both lie in one folder, as Parquet files that are never changed; the newest file in `manifest` names those that count.
Readers so see a whole position of the log or the next one, never what is between. docs/analysts.md says more.
"""

from __future__ import annotations

from spark_projections.live.follow import follow
from spark_projections.live.manifest import LiveTablesError
from spark_projections.live.tables import changes, entities, position, register

__all__ = ["LiveTablesError", "changes", "entities", "follow", "position", "register"]
