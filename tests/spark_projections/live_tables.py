"""Processes of `annals spark live`, which tests can kill, and checks of their tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections import analysis, live
from annals.spark_projections.live.folder import LiveTableFolder
from annals.spark_projections.log_schema import LOG_SCHEMA
from tests.support.serving import environment

#: A process is killed when one of these files appears: a micro-batch is planned, partly written, complete.
MOMENTS: Final = ("checkpoint/offsets/[0-9]*", "tables/changes/*", "tables/manifest/*.json")

_CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_SETTINGS: Final = {"ANNALS_SPARK_MASTER": "local[2]", "ANNALS_SPARK_MEMORY": "700m"}


def start_live(
    home: Path, *options: str, once: bool = True, conf: Mapping[str, str] = {}, **settings: str
) -> subprocess.Popen[str]:
    """`annals spark live` with its tables and its checkpoint below a folder. conf: more settings of Spark."""
    places = ("--to", str(home / "tables"), "--checkpoint", str(home / "checkpoint"))
    command = [sys.executable, "-m", "annals", "spark", "live", *places, *(("--once",) if once else ()), *options]
    env = environment(**_SETTINGS, ANNALS_SPARK_CONF=json.dumps({**_CONF, **conf}), **settings)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=home, env=env, text=True, start_new_session=True, stdout=pipe, stderr=pipe)


def run_to_end(home: Path, *options: str, conf: Mapping[str, str] = {}, **settings: str) -> str:
    """Its output once it has reached the end of the log."""
    out, err = (process := start_live(home, *options, once=True, conf=conf, **settings)).communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def kill_at(home: Path, moment: str, *options: str) -> None:
    """Kills the process and its JVM as soon as a new file of a name exists."""
    before = set(home.glob(moment))
    process = start_live(home, *options)
    while set(home.glob(moment)) <= before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def table(spark: SparkSession, rows: Iterable[LogTableRow]) -> DataFrame:
    """A log in memory."""
    return spark.createDataFrame([tuple(row) for row in rows], LOG_SCHEMA)


def check_tables(spark: SparkSession, folder: Path, rows: Iterable[LogTableRow]) -> int:
    """Compares the live tables with those of the log up to their position, and returns the position."""
    position = live.position(spark, str(folder))
    log = table(spark, [row for row in rows if row.last <= position])
    for name in ("entities", "changes"):
        made, wanted = getattr(live, name)(spark, str(folder)), getattr(analysis, name)(log)
        assert made.schema == wanted.schema
        assert sorted(map(str, made.collect())) == sorted(map(str, wanted.collect()))
    return position


def check_no_stray_runs(spark: SparkSession, folder: Path) -> None:
    """Checks that the manifest names each run that is in the folder."""
    manifest = LiveTableFolder(spark, str(folder)).newest_manifest()
    there = {f"{run.parent.name}/{run.name}" for run in folder.glob("*/*") if run.is_dir()}
    assert there == manifest.folders() | set(manifest.retired)
