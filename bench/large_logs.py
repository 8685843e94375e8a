"""A log that grows large: generated, stored, rebuilt, proved, archived, read, with sizes and the memory of each step.

ANNALS_BENCH_EVENTS is its number of events, such as 10000000. ANNALS_BENCH_KEEP is a folder that keeps the figures and
the work of each step, on SQLite: ten million events take hours, and a run continues where an earlier one was stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import psycopg
from sqlalchemy import make_url, text

from annals.commands.store.log import Store
from annals.domain.registry.events import EntityDeleted
from annals.projections.database.drivers import database_of
from annals.projections.entities.rebuild import state_hash
from annals.projections.entities.tables import tables
from annals.projections.log.reader import Log
from bench.figures import Figure, Want
from bench.load import rate
from bench.places import Place, serving
from bench.watched import GIGABYTE, Run, run_annals, run_stage

EVENTS: Final = "ANNALS_BENCH_EVENTS"
KEEP: Final = "ANNALS_BENCH_KEEP"
DEFAULT_EVENTS: Final = 1_000_000
#: The most that ten million events may take on disk, the database and its archive together.
MAX_BYTES: Final = 25 * GIGABYTE / 10_000_000
#: The most memory that a step may take outside Spark.
MAX_MEMORY: Final = 4.0
#: The part of the log that is archived.
ARCHIVED: Final = 0.9
#: How many moments of the past are read.
MOMENTS: Final = 200


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """The steps in their order. Each rebuild fails unless its entities are those of the log."""
    events = 5000 if quick else int(os.environ.get(EVENTS, DEFAULT_EVENTS))
    with _place_to_work(place, events) as (database, folder):
        log, taken = LargeLog(place, events, database, folder), TakenSteps(folder / "steps.json")
        for step in LargeLog.STEPS:
            yield from taken.figures(step.__name__, step(log))


@contextmanager
def _place_to_work(place: Place, events: int) -> Iterator[tuple[str, Path]]:
    """The URL of a database and a folder: those of an earlier run that a later one continues, or new ones."""
    if (kept := os.environ.get(KEEP)) and place.name == "SQLite":
        folder = Path(kept) / str(events)
        folder.mkdir(parents=True, exist_ok=True)
        yield f"sqlite:///{folder}/database/annals.db", folder
    else:
        with place.fresh() as (database, _), TemporaryDirectory(prefix="annals-bench-") as temporary:
            yield database, Path(temporary)


class TakenSteps:
    """The figures of steps that an earlier run has taken, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._figures: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}

    def figures(self, step: str, taken_now: Iterator[Figure]) -> Iterator[Figure]:
        """Those of a step, which is taken unless it was."""
        if step in self._figures:
            yield from (Figure(**values | {"want": Want(values["want"])}) for values in self._figures[step])
            return
        figures = list[Figure]()
        for figure in taken_now:
            figures.append(figure)
            yield figure
        self._figures[step] = [asdict(figure) for figure in figures]
        self._path.write_text(json.dumps(self._figures))


class EventFigures(NamedTuple):
    """Figures of a store about some events."""

    store: str
    events: int

    def figure(self, what: str, measured: str, floor: str, ratio: float, bound: float | None, unit: str) -> Figure:
        """One of them."""
        size = f"{self.events:,} events"
        return Figure(what, self.store, size, measured, floor, ratio, Want.AT_MOST, bound, unit)

    def step(self, what: str, run: Run, memory: float | None = MAX_MEMORY) -> Iterator[Figure]:
        """The hours of a step, and the most memory that it took. memory: the wanted bound, in gigabytes."""
        hours, gigabytes = run.all / 3600, run.memory / GIGABYTE
        work = f"{1e6 * run.busy / self.events:.0f} µs of processors an event"
        yield self.figure(what, f"{hours:.2f} h", f"{self.events / run.all:,.0f}/s", hours, None, " h")
        yield self.figure(f"{what}: memory", f"{gigabytes:.2f} GB", work, gigabytes, memory, " GB")

    def size(self, what: str, size: int, bound: float | None = None) -> Figure:
        """A size in bytes, and that of an event. bound: of the latter."""
        return self.figure(what, f"{size / GIGABYTE:.2f} GB", "", size / self.events, bound, " bytes")


class LargeLog:
    """The steps of one log. Each repeats what an interrupted run has left of it."""

    def __init__(self, place: Place, events: int, database: str, folder: Path) -> None:
        self._figures = EventFigures(place.name, events)
        self._events = events
        self._database = database
        self._segments = folder / "segments"
        self._archive = folder / "archive"
        self._moments = folder / "moments.json"

    def generate(self) -> Iterator[Figure]:
        """Decides commands, and writes what comes of them as segments."""
        shutil.rmtree(self._segments, ignore_errors=True)
        yield from self._figures.step("Generated as segments", run_stage("segments", self._segments, str(self._events)))
        yield self._figures.size("Segments", bytes_in(self._segments))

    def store(self) -> Iterator[Figure]:
        """Puts the log into an empty database."""
        if (file := make_url(self._database).database) and self._database.startswith("sqlite"):
            shutil.rmtree(Path(file).parent, ignore_errors=True)
            Path(file).parent.mkdir(parents=True)
        yield from self._figures.step("Stored", run_stage("stock", self._database, self._segments))

    def rebuild(self) -> Iterator[Figure]:
        """Makes the read model."""
        yield from self._figures.step("Rebuilt by one process", run_stage("process", self._database))

    def verify(self) -> Iterator[Figure]:
        """Proves the log, and reads from it."""
        yield from self._figures.step("Verified", run_annals("log", "verify", ANNALS_DATABASE=self._database))
        yield self._figures.size("Database", _database_bytes(self._database))
        self._moments.write_text(json.dumps(_moments(self._database, self._events)))
        yield from self._reads("")

    def archive(self) -> Iterator[Figure]:
        """Moves most of the log to an archive, and reads through it."""
        end = str(int(self._events * ARCHIVED))
        command = ("log", "archive", "--before", end, "--to", str(self._archive))
        yield from self._figures.step(f"Archived, {ARCHIVED:.0%}", run_annals(*command, ANNALS_DATABASE=self._database))
        _vacuum(self._database)
        size = _database_bytes(self._database)
        yield self._figures.size("Database after that", size)
        yield self._figures.size("Database and archive", size + bytes_in(self._archive), MAX_BYTES)
        yield from self._reads(", most of it archived")

    def rebuild_by_spark(self) -> Iterator[Figure]:
        """Makes the read model again."""
        run = run_stage("spark", self._database, self._segments)
        yield from self._figures.step("Rebuilt by Spark on 2 cores", run, None)

    def compare(self) -> Iterator[Figure]:
        """Adds up the hashes of all entities. Raises: RuntimeError if the sum is not the state hash of the log."""
        began = time.perf_counter()
        with closing(Store(self._database)) as store:
            expected = store.log_end().state
            with store.engine.begin() as connection:
                found = state_hash(connection, tables())
            if found != expected:
                raise RuntimeError("the rebuilt entities are not those of the log")
        hours = (time.perf_counter() - began) / 3600
        yield self._figures.figure(
            "Rebuilt entities, compared with the log's state hash", "equal", "", hours, None, " h"
        )

    STEPS: Final = (generate, store, rebuild, verify, archive, rebuild_by_spark, compare)

    def _reads(self, when: str) -> Iterator[Figure]:
        with TemporaryDirectory(prefix="annals-bench-") as folder, serving(self._database, Path(folder)) as served:
            present = ["/schemagroups?limit=100", "/endpoints?limit=100"]
            past = [f"{stream}?asof={position}" for stream, position in json.loads(self._moments.read_bytes())]
            for what, paths in (("GET 100 Groups", present), ("GET a Version as of then", past)):
                rate(served.url, paths, 1, Path(folder))
                found = rate(served.url, paths, 2, Path(folder))
                yield self._figures.figure(f"{what}{when}", f"{found:,.0f}/s", "", found, None, "/s")


def bytes_in(folder: Path) -> int:
    """The size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _database_bytes(database: str) -> int:
    if not database.startswith("postgresql"):
        return bytes_in(Path(make_url(database).database or "").parent)
    with closing(Store(database)) as store, store.engine.connect() as connection:
        sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        return int(connection.execute(text(f"{sizes} current_schema()::regnamespace")).scalar_one())


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
