"""A large export streams: its first byte comes at once, and the server's memory does not grow with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import httpx

from bench.figures import Figure, Want
from bench.memory import own
from bench.places import Place, serving
from bench.reading import fill
from tests.support.serving import Served

MEGABYTE: Final = 1 << 20


class Export(NamedTuple):
    """Seconds to the first byte and to the last, the bytes, and those that the server's memory rose by meanwhile."""

    first: float
    last: float
    size: int
    memory: int


#: What is measured are the bytes of the answer, not of its compression.
PLAIN: Final = {"accept-encoding": "identity"}


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Time to the first byte, and the rise in memory of a large export."""
    resources = 1000 if quick else 10_000
    with place.fresh() as (database, folder), serving(database, folder) as served:
        fill(served.url, resources)
        export(served)
        found = export(served)
    size = f"{2 * resources:,} entities, {found.size / MEGABYTE:.0f} MB in {found.last:.2f} s"
    first, last = 1000 * found.first, 1000 * found.last
    yield Figure(
        "Export: first byte",
        place.name,
        size,
        f"{first:.0f} ms",
        f"last byte {last:.0f} ms",
        first,
        Want.AT_MOST,
        100,
        " ms",
    )
    memory = found.memory / MEGABYTE
    yield Figure(
        "Export: rise in memory",
        place.name,
        size,
        f"{memory:.1f} MB",
        f"body {found.size / MEGABYTE:.0f} MB",
        memory,
        Want.AT_MOST,
        8,
        " MB",
    )


def export(served: Served) -> Export:
    """One whole export, read and thrown away."""
    before, began, size, first = own(served.process.pid), time.perf_counter(), 0, 0.0
    most = before
    with httpx.stream("GET", f"{served.url}/export", headers=PLAIN, timeout=600) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_raw():
            first = first or time.perf_counter() - began
            size += len(chunk)
            most = max(most, own(served.process.pid))
    return Export(first, time.perf_counter() - began, size, most - before)
