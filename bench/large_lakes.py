"""A lake of a log that grows large: each table by itself, with its time, its memory and its size.

The log is a history that is repeated (`bench.repeated_histories`). ANNALS_BENCH_EVENTS is its number of events, such as
30000000. ANNALS_BENCH_KEEP is a folder that keeps the segments, the tables and the figures: a run takes hours, and
continues where an earlier one was stopped. ANNALS_BENCH_TABLES names some tables, with commas; all are the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from annals.spark_projections.lake.tables import TABLES
from bench.figures import Figure
from bench.histories import write_segments
from bench.large_logs import EVENTS, KEEP, EventFigures, TakenSteps, bytes_in
from bench.places import Place
from bench.repeated_histories import repeat
from bench.watched import CORES, SPARK_SETTINGS, run_annals, run_stage

NAMES: Final = "ANNALS_BENCH_TABLES"
DEFAULT_EVENTS: Final = 1_000_000
#: The events of the history that is repeated, and the part of all events that it is at most.
_MAX_HISTORY: Final = 1_000_000
_HISTORY_PART: Final = 2


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """The tables in their order, and the proof of one of them. Nothing of it depends on the store."""
    if place.name != "SQLite":
        return
    events = 5000 if quick else int(os.environ.get(EVENTS, DEFAULT_EVENTS))
    names = os.environ.get(NAMES, ",".join(TABLES)).split(",")
    with _folder(events) as folder:
        lake, taken = LargeLake(folder, events), TakenSteps(folder / "lake.json")
        yield from taken.figures("segments", lake.generate())
        for name in TABLES:
            if name in names:
                yield from taken.figures(name, lake.append(name))
        if "entities" in names:
            yield from taken.figures("prove", lake.prove())


@contextmanager
def _folder(events: int) -> Iterator[Path]:
    if kept := os.environ.get(KEEP):
        folder = Path(kept) / str(events)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    else:
        with TemporaryDirectory(prefix="annals-bench-") as temporary:
            yield Path(temporary)


class LargeLake:
    """Segments and a lake of them in a folder."""

    def __init__(self, folder: Path, events: int) -> None:
        self._folder = folder
        self._events = events
        self._segments = folder / "segments"
        self._lake = folder / "lake"
        self._figures = EventFigures("segments", events)

    def generate(self) -> Iterator[Figure]:
        """The segments, unless they exist."""
        if not self._segments.exists():
            history = self._folder / "history"
            write_segments(history, min(_MAX_HISTORY, self._events // _HISTORY_PART))
            repeat(history, self._segments, self._events)
        yield self._figures.size("the log, size", bytes_in(self._segments))

    def append(self, name: str) -> Iterator[Figure]:
        """One table in Parquet, from the table `log`, which is made first."""
        arguments = ("--from", self._segments, "--to", self._lake, "--format", "parquet", "--table", name)
        run = run_annals("lake", "append", *arguments, **SPARK_SETTINGS)
        yield from self._figures.step(f"{name}: Spark on {CORES} cores", run, None)
        yield self._figures.size(f"{name}, size", bytes_in(self._lake / name))

    def prove(self) -> Iterator[Figure]:
        """Adds up the hashes of all rows of `entities`; fails unless the sum is the state hash of the log."""
        run = run_stage("prove", self._lake)
        yield from self._figures.step("entities, compared with the log's state hash", run, None)
