"""Rebuilding with Spark from segments, on one and two cores, compared with one process: speed, memory, stages.

And how fast each source of the log is read. ANNALS_BENCH_EVENTS adds a size, such as 10000000.
"""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final

from annals.commands.store.log import Store
from annals.projections.segments.folder import open_folder
from bench.figures import Figure, Want
from bench.histories import URL, write_segments
from bench.places import Place, serving
from bench.stocking import stock
from bench.watched import GIGABYTE, Run, run_stage

SWITCH: Final = "ANNALS_BENCH_EVENTS"
CORES: Final = (1, 2)
#: Events of a log.
SIZES: Final = (100_000, 1_000_000)
#: What a rebuild with Spark is made of, in order. Reading is a part of working out the rows.
STAGES: Final = ("start", "reading", "rows", "leaves", "loading", "indexes", "proof", "swap")


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Rebuilds at each size, then what the last of them is made of and how it grew, then sources."""
    sizes = _sizes(quick)
    costs: list[tuple[float, float]] = []
    for events in sizes:
        with place.fresh() as (database, _):
            segments = segments_of(events)
            with closing(Store(database, public_url=URL)) as store:
                stock(store, open_folder(str(segments)))
            alone = run_stage("process", database)
            wanted = CORES[-1:] if quick else CORES
            with_spark = {cores: run_stage("spark", database, segments, cores=cores) for cores in wanted}
            for cores, run in with_spark.items():
                yield from _compared(place, events, cores, run, alone)
            widest = with_spark[CORES[-1]]
            costs.append((alone.all / events, (widest.all - widest.seconds["start"]) / events))
            if events == sizes[-1]:
                yield from _stages(place, events, widest)
            if events == sizes[0]:
                yield from _sources(place, database, segments, events)
    if len(sizes) > 1:
        yield _growth("one process", place, sizes, [cost for cost, _ in costs])
        yield _growth(f"Spark on {CORES[-1]} cores, without its start", place, sizes, [cost for _, cost in costs])


def _sizes(quick: bool) -> list[int]:
    return [5000] if quick else [*SIZES, *([int(os.environ[SWITCH])] if SWITCH in os.environ else [])]


def _compared(place: Place, events: int, cores: int, run: Run, alone: Run) -> Iterator[Figure]:
    size, on = f"{events:,} events", f"Spark on {cores} core{'s' * (cores > 1)}"
    # Spark is for large logs, where its start counts less.
    is_bounded = cores > 1 and events >= 1_000_000
    measured, floor = f"{events / run.all:,.0f}/s", f"{events / alone.all:,.0f}/s in one process"
    yield Figure(
        f"Rebuild: {on}",
        place.name,
        size,
        measured,
        floor,
        alone.all / run.all,
        Want.AT_LEAST,
        1.0 if is_bounded else None,
        " x",
    )
    # Other work of the machine hardly changes this; the work of the database is not included.
    measured, floor = (f"{each.busy:.0f} s" for each in (run, alone))
    ratio = run.busy / alone.busy
    yield Figure(
        f"Processor time: {on}",
        place.name,
        size,
        measured,
        floor,
        ratio,
        Want.AT_MOST,
        1.3 if is_bounded else None,
        " x",
    )
    measured, floor = (f"{each.memory / GIGABYTE:.2f} GB" for each in (run, alone))
    ratio = run.memory / alone.memory
    yield Figure(f"Memory: {on}", place.name, size, measured, floor, ratio, Want.AT_MOST, None, " x")


def _stages(place: Place, events: int, run: Run) -> Iterator[Figure]:
    for stage in STAGES:
        seconds = run.seconds.get(stage, 0.0)
        measured, floor = f"{seconds:.1f} s", f"{run.all:.1f} s"
        what = f"Spark on {CORES[-1]} cores: {stage}" + " (part of rows)" * (stage == "reading")
        yield Figure(
            what, place.name, f"{events:,} events", measured, floor, 100 * seconds / run.all, Want.AT_MOST, None, " %"
        )


def _growth(what: str, place: Place, sizes: list[int], costs: list[float]) -> Figure:
    first, last = (f"{1e6 * cost:.0f} µs an event" for cost in (costs[0], costs[-1]))
    size = f"{sizes[0]:,} to {sizes[-1]:,}"
    return Figure(f"Growth: {what}", place.name, size, last, first, costs[-1] / costs[0], Want.AT_MOST, 1.5, " x")


def _sources(place: Place, database: str, segments: Path, events: int) -> Iterator[Figure]:
    """How fast the log is read on two cores, from segments, from the registry and from PostgreSQL."""
    jdbc = ["postgres", database] if database.startswith("postgresql") else []
    with TemporaryDirectory(prefix="annals-bench-") as folder, serving(database, Path(folder)) as served:
        seconds = run_stage("read", "segments", segments, "annals", served.url, *jdbc).seconds
    floor = seconds.pop("segments")
    floor_text = f"{events / floor:,.0f} rows/s from segments"
    for name, own in seconds.items():
        measured, ratio = f"{events / own:,.0f} rows/s", 100 * floor / own
        yield Figure(
            f"Source: {name}", place.name, f"{events:,} events", measured, floor_text, ratio, Want.AT_LEAST, None, " %"
        )


@lru_cache
def segments_of(events: int) -> Path:
    """A folder of segments with so many events, for all stores."""
    folder = Path(mkdtemp(prefix="annals-bench-segments-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_segments(folder, events)
    return folder
