"""Pages of a registry with many schemas: their times, compared with JSON of the same data, sizes (UI-18), first paints.

The first paints need Chromium.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Final, NamedTuple

import httpx

from bench import samples
from bench.figures import Figure, Want
from bench.places import Place, serving
from bench.searching import wait_for_index
from tests.support.browser import Walk, chromium, walking

#: Schemas of each Group, and Groups of one request that fills the registry.
EACH: Final = 200
TOGETHER: Final = 5
#: Requests of each path, page and JSON in turn, whose medians are compared.
ROUNDS: Final = 21
#: Times that each page is shown in a browser.
PAINTS: Final = 5
MOST_MILLISECONDS: Final = 300.0
#: How many times as long as the answers of the API a page may take.
MOST_TIMES_JSON: Final = 3.0
MEGABYTE: Final = 1 << 20
_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')"
_SCHEMA: Final = "schemagroups/group7/schemas/schema7"


class ComparedPage(NamedTuple):
    """A page and the answers of the API with the data that it shows. bound: milliseconds that it may take on SQLite."""

    name: str
    path: str
    answers: tuple[str, ...] = ()
    bound: float = MOST_MILLISECONDS


PAGES: Final = (
    ComparedPage(
        "Overview",
        "",
        (
            "/",
            "/-/counts",
            "/-/interactions?order=desc&limit=10",
            "/-/readyz",
            "/-/findings?limit=1000",
            "/subscriptions?limit=100",
        ),
        30.0,
    ),
    ComparedPage(
        "A schema",
        f"explore/{_SCHEMA}",
        (
            f"/{_SCHEMA}$details",
            f"/{_SCHEMA}/meta",
            f"/{_SCHEMA}",
            f"/{_SCHEMA}/versions?limit=500",
            f"/-/history/{_SCHEMA}/versions?below=true&order=desc&limit=1000",
            f"/-/references/{_SCHEMA}?direction=out&limit=50",
            f"/-/references/{_SCHEMA}?direction=in&limit=50",
        ),
        20.0,
    ),
    ComparedPage(
        "50 schemas",
        "explore/schemagroups/group7/schemas",
        ("/schemagroups/group7/schemas?inline=meta&limit=50",),
    ),
    ComparedPage("Filtered schemas", "explore/schemagroups/group7/schemas?filter=labels.team=team3"),
    ComparedPage("50 interactions", "timeline", ("/-/interactions?order=desc&xids=3&limit=50",)),
    ComparedPage("Search", "search?q=field3", ("/-/search?q=field3",)),
    ComparedPage("Findings", "findings"),
    ComparedPage("Form of a schema", f"edit/{_SCHEMA}"),
    ComparedPage("Compare", f"compare/{_SCHEMA}"),
)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """The time of each page, and of its JSON where it shows one answer, and its size."""
    groups = 10 if quick else 500
    headers = {"accept-encoding": "identity"}
    with (
        place.fresh() as (database, folder),
        serving(database, folder) as served,
        httpx.Client(base_url=served.url, timeout=600, headers=headers) as client,
    ):
        for start in range(0, groups, TOGETHER):
            client.post("/schemagroups", content=samples.body(TOGETHER, EACH, start)).raise_for_status()
        wait_for_index(client)  # which takes the time of a core meanwhile
        size = f"{groups * EACH:,} schemas"
        paints = _first_paints(served.url)
        for page in PAGES:
            milliseconds, json_milliseconds, length = _medians(client, page)
            measured = f"{milliseconds:.1f} ms, {length / 1000:.0f} kB"
            bound = page.bound if place.name == "SQLite" else MOST_MILLISECONDS
            yield Figure(page.name, place.name, size, measured, "", milliseconds, Want.AT_MOST, bound, " ms")
            if page.answers:
                name, floor = f"{page.name}, compared with its JSON", f"{json_milliseconds:.1f} ms"
                ratio = milliseconds / json_milliseconds
                yield Figure(name, place.name, size, measured, floor, ratio, Want.AT_MOST, MOST_TIMES_JSON)
            paint = paints[page.name]
            name, bound = f"{page.name}, first paint in Chromium", MOST_MILLISECONDS
            yield Figure(name, place.name, size, f"{paint:.0f} ms", "", paint, Want.AT_MOST, bound, " ms")


def _first_paints(url: str) -> dict[str, float]:
    """The median milliseconds from a click to the first paint, by page, with scripts and styles in the cache."""
    with chromium() as browser, walking(browser, url) as walk:
        for page in PAGES:
            walk.go(f"/ui/{page.path}")
        return {page.name: median(_first_paint(walk, page.path) for _ in range(PAINTS)) for page in PAGES}


def _first_paint(walk: Walk, path: str) -> float:
    page = walk.go(f"/ui/{path}")
    page.wait_for_function(f"{_PAINT}.length > 0")
    return float(page.evaluate(f"{_PAINT}[0].startTime"))


def _medians(client: httpx.Client, page: ComparedPage) -> tuple[float, float, int]:
    """The median milliseconds of the page and of its answers, and the bytes of the page."""
    page_times, json_times, length = list[float](), list[float](), 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        length = len(client.get(f"/ui/{page.path}").raise_for_status().content)
        page_times.append(time.perf_counter() - began)
        began = time.perf_counter()
        for path in page.answers:
            client.get(path).raise_for_status()
        json_times.append(time.perf_counter() - began)
    assert length <= MEGABYTE, f"{page.path}: {length} bytes"
    return 1000 * sorted(page_times)[ROUNDS // 2], 1000 * sorted(json_times)[ROUNDS // 2], length
