"""A replica's log is like any other: its read model can be rebuilt from segments by Spark (LEG-910)."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import SegmentSize, append_segments
from annals.spark_projections.read_model.rebuild import rebuild
from annals.spark_projections.sources import segments
from tests.spark_projections.test_equality import clear_live_tables, model, rebuild_by_spark
from tests.support.registries.linked import manual_link, named_registry

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(600)]


def test_spark_makes_of_a_copied_log_what_it_holds(spark: SparkSession, tmp_path: Path) -> None:
    # LEG-910, P-14: the registry can be rebuilt from a log that has interactions of two registries
    async def run() -> None:
        async with (
            named_registry("primary1", f"sqlite:///{tmp_path}/one.db") as there,
            named_registry("replica1", f"sqlite:///{tmp_path}/other.db", 1) as here,
            manual_link(here, there, {"groups": ["/schemagroups/a"]}) as pull,
        ):
            await there.write("PUT", "/schemagroups/a/schemas/s/versions/1$details", {"format": "X/1", "schema": "one"})
            await pull.ingest()
            await here.write("PUT", "/schemagroups/own", {})
            await there.write("PUT", "/schemagroups/a/schemas/s/versions/2$details", {"format": "X/1", "schema": "two"})
            await there.write("DELETE", "/schemagroups/a/schemas/s/versions/1")
            await pull.ingest()
            live = model(here.store)
            assert live.hash == here.store.log_end().state
            folder = str(tmp_path / "segments")
            append_segments(here.database, open_folder(folder), SegmentSize(events=5))
            clear_live_tables(here.store)
            rebuild(segments.read(spark, folder), partial(rebuild_by_spark, here.store))
            assert model(here.store) == live

    asyncio.run(run())
