"""A log that grows large: generated, stored, rebuilt, proved, archived, read, with sizes and the memory of each step.

ANNALS_BENCH_EVENTS is its number of events, such as 10000000.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
from sqlalchemy import make_url, text

from annals.commands.store.log import Store
from annals.domain.registry.events import EntityDeleted
from annals.projections.database.drivers import database_of
from annals.projections.log.reader import Log
from bench.figures import Figure, Want
from bench.load import rate
from bench.places import Place, serving
from bench.watched import Run, run_annals, run_stage

SWITCH: Final = "ANNALS_BENCH_EVENTS"
DEFAULT_EVENTS: Final = 1_000_000
GIGABYTE: Final = 1 << 30
#: The most that ten million events may take on disk, the database and its archive together.
MAX_BYTES: Final = 25 * GIGABYTE / 10_000_000
#: The most memory that a step may take outside Spark.
MAX_MEMORY: Final = 4.0
#: The part of the log that is archived.
ARCHIVED: Final = 0.9
#: How many moments of the past are read.
MOMENTS: Final = 200


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """The steps in their order. That the rebuilt tables are those of the log, each rebuild proves by its state hash."""
    events = 5000 if quick else int(os.environ.get(SWITCH, DEFAULT_EVENTS))
    with TemporaryDirectory(prefix="annals-bench-") as folder, place.fresh() as (database, work):
        segments, archive = Path(folder) / "segments", Path(folder) / "archive"
        yield from _step(place, events, "Generated as segments", run_stage("segments", segments, str(events)))
        yield _size(place, events, "Segments", _bytes_in(segments))
        yield from _step(place, events, "Stored", run_stage("stock", database, segments))
        yield from _step(place, events, "Rebuilt by one process", run_stage("process", database))
        yield from _step(place, events, "Rebuilt by Spark on 2 cores", run_stage("spark", database, segments), None)
        yield from _step(place, events, "Verified", run_annals("log", "verify", ANNALS_DATABASE=database))
        yield _size(place, events, "Database", _database_bytes(database, work))
        end, heads = int(events * ARCHIVED), _moments(database, events)
        yield from _reads(place, events, database, heads, "")
        command = ("log", "archive", "--before", str(end), "--to", str(archive))
        yield from _step(place, events, f"Archived, {ARCHIVED:.0%}", run_annals(*command, ANNALS_DATABASE=database))
        _vacuum(database)
        yield _size(place, events, "Database after that", _database_bytes(database, work))
        total = _database_bytes(database, work) + _bytes_in(archive)
        yield _size(place, events, "Database and archive", total, MAX_BYTES)
        yield from _reads(place, events, database, heads, ", most of it archived")


def _step(place: Place, events: int, what: str, run: Run, memory: float | None = MAX_MEMORY) -> Iterator[Figure]:
    size, hours = f"{events:,} events", run.all / 3600
    speed = f"{events / run.all:,.0f}/s"
    yield Figure(what, place.name, size, f"{hours:.2f} h", speed, hours, Want.AT_MOST, None, " h")
    gigabytes = run.memory / GIGABYTE
    work = f"{1e6 * run.busy / events:,.0f} µs of processors an event"
    yield Figure(
        f"{what}: memory", place.name, size, f"{gigabytes:.2f} GB", work, gigabytes, Want.AT_MOST, memory, " GB"
    )


def _size(place: Place, events: int, what: str, size: int, bound: float | None = None) -> Figure:
    each = size / events
    return Figure(
        what, place.name, f"{events:,} events", f"{size / GIGABYTE:.2f} GB", "", each, Want.AT_MOST, bound, " bytes"
    )


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _database_bytes(database: str, work: Path) -> int:
    if not database.startswith("postgresql"):
        return _bytes_in(work)
    with closing(Store(database)) as store, store.engine.connect() as connection:
        tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        return int(connection.execute(text(f"{tables} current_schema()::regnamespace")).scalar_one())


def _vacuum(database: str) -> None:
    """Gives back the space of what was archived. Both databases refuse this inside a transaction."""
    if database.startswith("postgresql"):
        with psycopg.connect(database, autocommit=True) as server:
            server.execute("VACUUM FULL")
    else:
        with closing(sqlite3.connect(make_url(database).database or "", isolation_level=None)) as file:
            file.execute("VACUUM")


def _moments(database: str, events: int) -> list[tuple[str, int]]:
    """Versions, each with the end of the interaction that wrote it."""
    found: list[tuple[str, int]] = []
    with closing(Store(database)) as store, store.engine.begin() as connection:
        log = Log(database_of(connection))
        for number in range(MOMENTS):
            for interaction in log.interactions(events * number // MOMENTS, 10):
                rows = log.events(interaction.first, interaction.last)
                written = {row.stream: row.topic != EntityDeleted.TOPIC for row in rows if "/versions/" in row.stream}
                found += [(stream, interaction.last) for stream, is_live in written.items() if is_live][:1]
    return found


def _reads(place: Place, events: int, database: str, moments: list[tuple[str, int]], when: str) -> Iterator[Figure]:
    with TemporaryDirectory(prefix="annals-bench-") as folder, serving(database, Path(folder)) as served:
        present = ["/schemagroups?limit=100", "/endpoints?limit=100"]
        past = [f"{stream}?asof={position}" for stream, position in moments]
        for what, paths in (("GET 100 Groups", present), ("GET a Version as of then", past)):
            rate(served.url, paths, 1, Path(folder))
            found = rate(served.url, paths, 2, Path(folder))
            yield Figure(
                f"{what}{when}",
                place.name,
                f"{events:,} events",
                f"{found:,.0f}/s",
                "",
                found,
                Want.AT_LEAST,
                None,
                "/s",
            )
