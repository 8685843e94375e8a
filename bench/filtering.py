"""Filters, sorts, pages and counts at growing sizes, compared with the smallest; a list, with its plain JSON."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Final

import httpx
import orjson

from annals.domain.values.json_text import dumps
from bench import samples
from bench.figures import Figure, Want
from bench.places import Place, serving

#: Set to measure a million Resources too, which takes an hour to fill.
MILLION: Final = "ANNALS_BENCH_MILLION"
#: Requests whose median counts.
ROUNDS: Final = 9
#: The same for what takes two milliseconds, where nine would be chance.
MANY: Final = 101
#: Size from which on times are to stay flat, and how flat.
FLAT: Final = (10_000, 2)
#: A Group of 1,000.
LIST: Final = "/schemagroups/thousand/schemas"
#: What is asked for; where the number of matches is not the same at every size, a page of 100 of them.
ASKED: Final = {
    "Filter by id": "/schemagroups/big/schemas?filter=schemaid=schema7",
    "Filter by name": "/schemagroups/big/schemas?filter=name=Schema 7",
    "Filter by label, a page by its link": "/schemagroups/big/schemas?filter=labels.team=team3&limit=10",
    "Filter by nested attribute, a page by its link": "/schemagroups/big/schemas?filter=meta.readonly=false&limit=100",
    "Sort, first page": "/schemagroups/big/schemas?sort=name&limit=100",
    "Sort, a page by its link": "/schemagroups/big/schemas?sort=name&limit=100",
    "First page": "/schemagroups/big/schemas?limit=100",
    "A page by its link": "/schemagroups/big/schemas?limit=100",
    "inline=* of one Group": "/schemagroups/group0?inline=*",
    "GET /": "/",
    "GET / with a filter": "/?filter=schemagroups.name=Group 3",
}
PLAIN: Final = {"accept-encoding": "identity"}


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """One figure for each question and size: its time, compared with the smallest size from which it is to be flat."""
    times: dict[str, float] = {}
    sizes = (1000, 10_000) if quick else (1000, 10_000, 100_000, *((1_000_000,) if MILLION in os.environ else ()))
    for resources in sizes:
        with (
            place.fresh() as (database, folder),
            serving(database, folder) as served,
            httpx.Client(base_url=served.url, timeout=600, headers=PLAIN) as client,
        ):
            _fill(client, resources)
            yield from _questions(client, place, resources, times)
            if resources == sizes[-1]:
                yield _list(client, place, resources)


def _fill(client: httpx.Client, resources: int) -> None:
    """Half of the schemas in one group, the others a hundred to a group."""
    for start in range(0, resources // 2, 500):
        schemas = {f"schema{n}": samples.schema(n) for n in range(start, start + 500)}
        client.post("/schemagroups/big/schemas", content=dumps(schemas)).raise_for_status()
    for start in range(0, resources // 200, 5):
        client.post("/schemagroups", content=samples.body(5, 100, start)).raise_for_status()
    client.post(LIST, content=dumps({f"schema{n}": samples.schema(n) for n in range(1000)})).raise_for_status()


def _questions(client: httpx.Client, place: Place, resources: int, times: dict[str, float]) -> Iterator[Figure]:
    for what, path in ASKED.items():
        asked = _linked(client, path) if "link" in what else path
        seconds = _median(lambda asked=asked: client.get(asked).raise_for_status())  # type: ignore[misc]
        if resources <= FLAT[0]:
            times[what] = seconds
        floor = times[what]
        size = f"{resources:,} Resources"
        measured, least = f"{1000 * seconds:.1f} ms", f"{1000 * floor:.1f} ms"
        yield Figure(what, place.name, size, measured, least, seconds / floor, Want.AT_MOST, FLAT[1], " x")


def _list(client: httpx.Client, place: Place, resources: int) -> Figure:
    """1,000 entities in one answer, compared with writing the same JSON from memory."""
    url = client.base_url
    with closing(HTTPConnection(url.host, url.port)) as connection:
        # The plainest client, so that what is measured is the answer.
        seconds = _median(lambda: _body(connection, LIST), MANY)
        value = orjson.loads(_body(connection, LIST))
    floor = _median(lambda: orjson.dumps(value), MANY)
    what, size = f"List of {len(value):,} Resources", f"{resources:,} Resources"
    measured, least = f"{1000 * seconds:.1f} ms", f"{1000 * floor:.1f} ms to write it"
    return Figure(what, place.name, size, measured, least, seconds / floor, Want.AT_MOST, 10, " x")


def _body(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    return connection.getresponse().read()


def _linked(client: httpx.Client, path: str) -> str:
    """The last page but a few of a set."""
    for rel in ("last", "prev", "prev"):
        links = client.get(path).raise_for_status().headers.get_list("link")
        path = next((link[1 : link.index(">")] for link in links if f";rel={rel};" in link), path)
    return path


def _median(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[rounds // 2]
