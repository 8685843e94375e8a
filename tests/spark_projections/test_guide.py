"""docs/guides/spark/sources.md: its programs run against a served registry, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark_projections.served_registry import ServedLog, collect_rows
from tests.support.serving import ROOT

_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_programs_of_the_guide(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # `session` returns the existing session; the rest is as a reader would type it
    names: dict[str, Any] = {}
    # Spark's working folder is not the test's, so paths are absolute.
    places = {"http://127.0.0.1:8080": registry.url} | {
        f'"{name}"': f'"{tmp_path / name}"' for name in ("rows", "checkpoint")
    }
    programs = _PROGRAM.findall((ROOT / "docs" / "guides" / "spark" / "sources.md").read_text())
    assert len(programs) == 3
    for program in programs:
        for shown, own in places.items():
            program = program.replace(shown, own)
        exec(program, names)
    assert names["spark"] is spark
    assert collect_rows(names["log"]) == registry.rows()
    assert collect_rows(spark.read.parquet(str(tmp_path / "rows"))) == registry.rows()
