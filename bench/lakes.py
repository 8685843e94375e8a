"""Tables of a lake from segments: how fast they are written and verified, their size, and the memory that it takes.

Each format is compared with Spark's copy of the log to one Parquet table, without derived tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.figures import Figure, Want
from bench.places import Place
from bench.sparking import segments_of
from bench.watched import CORES, GIGABYTE, SPARK_SETTINGS, Run, run_annals, run_stage

FORMATS: Final = ("parquet", "delta", "iceberg")
SIZE: Final = 100_000


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Each format. Nothing of it depends on the store."""
    if place.name != "SQLite":
        return
    events = 5000 if quick else SIZE
    segments = segments_of(events)
    with TemporaryDirectory(prefix="annals-bench-") as folder:
        copy = run_stage("copy", segments, Path(folder) / "log")
    for format in FORMATS:
        with TemporaryDirectory(prefix="annals-bench-") as folder:
            arguments = ("--to", f"{folder}/lake", "--format", format)
            append = run_annals("lake", "append", "--from", segments, *arguments, **SPARK_SETTINGS)
            size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            verify = run_annals("lake", "verify", *arguments, **SPARK_SETTINGS)
        yield from _speeds(f"{format}, append", events, append, copy)
        yield from _speeds(f"{format}, verify", events, verify, copy)
        measured, ratio = f"{size / GIGABYTE:.2f} GB", size / events
        yield Figure(
            f"{format}, size", "segments", f"{events:,} events", measured, "", ratio, Want.AT_MOST, None, " bytes"
        )


def _speeds(what: str, events: int, run: Run, copy: Run) -> Iterator[Figure]:
    """The speed and the memory of a command, compared with those of a copy. Both include the start of Spark."""
    size = f"{events:,} events"
    measured, floor = f"{events / run.all:,.0f}/s", f"{events / copy.all:,.0f}/s copied"
    ratio = run.all / copy.all
    yield Figure(f"{what}: Spark on {CORES} cores", "segments", size, measured, floor, ratio, Want.AT_MOST, None, " x")
    measured, floor = (f"{each.memory / GIGABYTE:.2f} GB" for each in (run, copy))
    ratio = run.memory / copy.memory
    yield Figure(f"{what}: memory", "segments", size, measured, floor, ratio, Want.AT_MOST, None, " x")
