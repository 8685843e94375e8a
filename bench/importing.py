"""One request with 10 groups of schemas and their documents, compared with parsing it and inserting its rows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import mean
from typing import Final

import httpx

from annals.commands.store.log import Store
from bench import samples
from bench.bare import Rows, added, count, rows_of, seconds_to_insert
from bench.figures import Figure, Want
from bench.memory import forget_peak, peak, resident
from bench.places import Place, serving
from tests.support.serving import Served

MEGABYTE: Final = 1 << 20
#: The fastest of so many counts, of imports as of floors.
TURNS: Final = 3


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Time and memory of one large request, then how its cost per entity grows with the registry."""
    yield from _one_request(place, 100 if quick else 1000)
    yield from _growth(place, 10 if quick else 100)


def _one_request(place: Place, each: int) -> Iterator[Figure]:
    body = samples.body(10, each)
    seconds, floor, memory, rows = min(_imported(place, body) for _ in range(TURNS))
    size = f"{10 * each:,} schemas, {len(body) / MEGABYTE:.1f} MB, {rows:,} rows"
    yield Figure(
        "Import in one request",
        place.name,
        size,
        f"{seconds:.2f} s",
        f"{floor:.2f} s",
        seconds / floor,
        Want.AT_MOST,
        4,
        " x",
    )
    yield Figure(
        "Memory of that import, over its body",
        place.name,
        size,
        f"{memory / MEGABYTE:.0f} MB",
        f"{len(body) / MEGABYTE:.1f} MB",
        memory / len(body),
        Want.AT_MOST,
        20,
        " x",
    )


def _imported(place: Place, body: bytes) -> tuple[float, float, int, int]:
    """Seconds of the import into a new registry and those of its floor, bytes of memory, rows that it leaves."""
    with place.fresh() as (database, folder), closing(Store(database)) as store, serving(database, folder) as served:
        _post(served.url, samples.body(1, 1, start=99))
        before = rows_of(store)
        seconds, memory = _timed(served, body)
        rows = added(before, rows_of(store))
        return seconds, _floor(store, body, rows), memory, count(rows)


def _timed(served: Served, body: bytes) -> tuple[float, int]:
    """Seconds of the request, and the bytes that the server's memory rose by meanwhile."""
    pid = served.process.pid
    forget_peak(pid)
    before, began = resident(pid), time.perf_counter()
    _post(served.url, body)
    return time.perf_counter() - began, peak(pid) - before


def _floor(store: Store, body: bytes, rows: Rows) -> float:
    began = time.perf_counter()
    json.loads(body)
    parsing = time.perf_counter() - began
    return parsing + min(seconds_to_insert(store, rows) for _ in range(3))


def _growth(place: Place, requests: int) -> Iterator[Figure]:
    """The last tenth of the requests compared with the first; each brings 1,000 schemas."""
    seconds = []
    with place.fresh() as (database, folder), serving(database, folder) as served:
        _post(served.url, samples.body(1, 1, start=9999))
        for turn in range(requests):
            body, began = samples.body(10, 100, start=10 * turn), time.perf_counter()
            _post(served.url, body)
            seconds.append(time.perf_counter() - began)
    tenth = max(1, requests // 10)
    first, last = mean(seconds[:tenth]), mean(seconds[-tenth:])
    yield Figure(
        "Import of 1,000 more",
        place.name,
        f"at {requests * 1000:,} schemas",
        f"{last:.2f} s",
        f"{first:.2f} s",
        last / first,
        Want.AT_MOST,
        1.5,
        " x",
    )


def _post(url: str, body: bytes) -> None:
    httpx.post(f"{url}/schemagroups", content=body, timeout=600).raise_for_status()
