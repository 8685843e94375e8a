"""Confluent's API over HTTP, from a client process, compared with the xRegistry API for the same schemas."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from multiprocessing.pool import Pool
from statistics import median
from typing import Any, Final, NamedTuple

import httpx

from annals.domain.values.json_text import dumps
from bench import client, samples
from bench.client import LISTED, WORKLOADS, Asked, Workload
from bench.figures import Figure, Want
from bench.places import Place, serving

BASE: Final = "/compat/confluent"
#: Subjects of one import.
TOGETHER: Final = 100
#: Versions that an import has to record in a second.
WANTED_IMPORTS: Final = 300
#: The first id of the schemas that are read, and of those that are imported after all others have their ids.
_KNOWN_IDS: Final = 100_000
_IMPORTED_IDS: Final = 1_000_000_000


def _text(number: int) -> str:
    return dumps(samples.schema(number)["schema"]).decode()


def _subjects(prefix: str, first_id: int, numbers: range) -> bytes:
    """The body of an import of subjects with one version each."""
    subjects: list[Any] = [
        {
            "subject": f"{prefix}{number}",
            "versions": [{"version": 1, "id": first_id + number, "schema": _text(first_id + number)}],
            "live": [1],
        }
        for number in numbers
    ]
    return dumps({"source": "bench", "subjects": subjects})


def _by_id(start: int) -> Iterator[Asked]:
    for number in count(start):
        yield "GET", f"{BASE}/schemas/ids/{_KNOWN_IDS + number % LISTED}", b""


def _known(start: int) -> Iterator[Asked]:
    for number in count(start):
        body = dumps({"schema": _text(_KNOWN_IDS + number % LISTED)})
        yield "POST", f"{BASE}/subjects/known{number % LISTED}/versions", body


def _new(start: int) -> Iterator[Asked]:
    for number in count(start):
        yield "POST", f"{BASE}/subjects/new{number}/versions", dumps({"schema": _text(10_000_000 + number)})


def _imported(start: int) -> Iterator[Asked]:
    for number in count(start):
        numbers = range(number * TOGETHER, (number + 1) * TOGETHER)
        yield "POST", f"{BASE}/-/import", _subjects("imported", _IMPORTED_IDS, numbers)


def _named(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


class Pair(NamedTuple):
    """A workload, its floor, and the percentage of the floor that it has to reach."""

    workload: Workload
    floor: Workload
    wanted: int


_READ: Final = _named("Read a document, 8 connections")
PAIRS: Final = (
    Pair(Workload("Confluent: get a schema by its id, 8 connections", 8, _by_id), _READ, 80),
    Pair(Workload("Confluent: register a known schema, 8 connections", 8, _known), _READ, 70),
    Pair(Workload("Confluent: register a new schema, 8 clients", 8, _new), _named("Create a schema, 8 clients"), 80),
)
IMPORT: Final = Workload(f"Confluent: import, {TOGETHER} subjects a request", 1, _imported, TOGETHER)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """One figure for each kind of request, in rounds that take turns with its floor; the imports come last."""
    rounds, seconds = (1, 0.3) if quick else (5, 2.0)
    with (
        place.fresh() as (database, folder),
        serving(database, folder) as served,
        get_context("spawn").Pool(1) as pool,
    ):
        pool.apply(client.prepare, (served.url,))
        pool.apply(prepare, (served.url,))
        for pair in PAIRS:
            yield _figure(pair, place, pool, served.url, rounds, seconds)
        imported = median(_rates(IMPORT, pool, served.url, rounds, seconds))
        share = 100 * imported / WANTED_IMPORTS
        measured, floor = f"{imported:,.0f}/s", f"{WANTED_IMPORTS}/s"
        yield Figure(IMPORT.name, place.name, f"{rounds} rounds", measured, floor, share, Want.AT_LEAST, 100, " %")


def prepare(url: str) -> None:
    """Puts in the schemas that are read and registered again."""
    body = _subjects("known", _KNOWN_IDS, range(LISTED))
    httpx.post(f"{url}{BASE}/-/import", content=body, timeout=600).raise_for_status()


def _figure(pair: Pair, place: Place, pool: Pool, url: str, rounds: int, seconds: float) -> Figure:
    turns = zip(
        _rates(pair.workload, pool, url, rounds, seconds), _rates(pair.floor, pool, url, rounds, seconds), strict=True
    )
    rates = sorted(turns, key=lambda turn: turn[0] / turn[1])
    measured, floor = rates[len(rates) // 2]
    share = 100 * measured / floor
    return Figure(
        pair.workload.name,
        place.name,
        f"{rounds} rounds, compared with: {pair.floor.name}",
        f"{measured:,.0f}/s",
        f"{floor:,.0f}/s",
        share,
        Want.AT_LEAST,
        pair.wanted,
        " %",
    )


def _rates(workload: Workload, pool: Pool, url: str, rounds: int, seconds: float) -> Iterator[float]:
    """Entities a second of each round."""
    start = 0
    for _ in range(rounds):
        rate, start = pool.apply(client.rate_of, (url, workload, start, seconds))
        yield rate
