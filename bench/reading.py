"""Reading a Version's document and its details over HTTP, compared with a constant JSON answer of the same server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx

from bench import samples
from bench.figures import Figure, Want
from bench.load import rate
from bench.places import Place, serving

CONSTANT: Final = "/-/livez"
#: Share of the constant route's rate.
BOUNDS: Final = {"SQLite": 40, "PostgreSQL": 25}
WHAT: Final = {"GET a Version's document": "", "GET a Version's details": "$details"}


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """One figure for each form of answer and each size of the registry."""
    for resources in (1000,) if quick else (1000, 100_000):
        with place.fresh() as (database, folder), serving(database, folder) as served:
            fill(served.url, resources)
            yield from _rates(place, served.url, resources, 1 if quick else 2, folder)


def fill(url: str, resources: int) -> None:
    """Puts so many schemas in, 1,000 a request and a hundred a group."""
    with httpx.Client(timeout=600) as client:
        for start in range(0, resources // 100, 10):
            client.post(f"{url}/schemagroups", content=samples.body(10, 100, start)).raise_for_status()


def _rates(place: Place, url: str, resources: int, seconds: float, folder: Path) -> Iterator[Figure]:
    numbers = range(0, resources, max(1, resources // 1000))
    paths = [f"/schemagroups/group{n // 100}/schemas/schema{n % 100}/versions/1" for n in numbers]
    rate(url, [CONSTANT], 1, folder)
    for what, suffix in WHAT.items():
        # In turns, and the middle of three: the machine's own pace changes within seconds.
        rounds = [
            (rate(url, [CONSTANT], seconds, folder), rate(url, [path + suffix for path in paths], seconds, folder))
            for _ in range(3)
        ]
        constant, read = sorted(rounds, key=lambda pair: pair[1] / pair[0])[1]
        share, bound = 100 * read / constant, BOUNDS[place.name]
        size = f"{resources:,} Resources"
        yield Figure(what, place.name, size, f"{read:,.0f}/s", f"{constant:,.0f}/s", share, Want.AT_LEAST, bound, " %")
