"""Searches over many schemas: their times, the size of the index, and how soon it has a write (UI-105, UI-106)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random
from statistics import quantiles
from typing import Any, Final

import httpx
from sqlalchemy import create_engine

from annals.domain.values.json_text import dumps
from bench.figures import Figure, Want
from bench.places import Place, serving

#: Schemas of a Group, and of a request that fills the registry; fields of a schema.
EACH: Final = 200
FIELDS: Final = 10
#: Different names of fields.
FIELD_NAMES: Final = 50_000
QUERIES: Final = 400
P95_MILLISECONDS: Final = 50.0
LONGEST_MILLISECONDS: Final = 500.0
#: The size of words and keys in percent of that of the documents; answers need their texts besides.
INDEX_PERCENT: Final = 30.0
FOUND_SECONDS: Final = 1.0
#: Seconds in which a server begins and ends a merge of all.
MERGE_SECONDS: Final = 40.0
WRITES: Final = 10
_SYLLABLES: Final = "ba ce di fe gu ha je ki lo mu na pe qui ro su ta ve wi xo zu"
_COMMON: Final = """
    id order customer address street city country total amount currency price item product quantity status payment
    invoice shipment carrier weight email phone name birth date time created updated version source target sensor
    temperature value unit battery level location device serial number account balance card branch code type kind
    category label note reason result score index count length width height color image path user role team project
    priority session event topic header body channel rate tax discount refund region zone stock supplier contract
"""
_TYPES: Final = ("string", "long", "double", "boolean", {"type": "long", "logicalType": "timestamp-millis"})
_WORD_TABLES: Final = ("search_segment", "search_gone", "search_key", "search_block")
_TEXT_TABLES: Final = ("search_text",)
_SQLITE_SIZE: Final = (
    "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name IN ({}))"
)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """The times of queries of different kinds, the size of the index, and the time until a write is found."""
    schemas = 4_000 if quick else 100_000
    words = _Words(Random(1))
    size = f"{schemas:,} schemas, {schemas * FIELDS:,} fields"
    headers = {"accept-encoding": "identity"}
    with (
        place.fresh() as (database, folder),
        serving(database, folder) as served,
        httpx.Client(base_url=served.url, timeout=600, headers=headers) as client,
    ):
        document_bytes = sum(_fill(client, words, start) for start in range(0, schemas, EACH))
        filled = time.perf_counter()
        wait_for_index(client)
        behind = time.perf_counter() - filled
        wait_for_merges(database)
        times = sorted(_seconds(client, query) for query in _queries(words, Random(2)))
        p95 = 1000 * quantiles(times, n=20)[-1]
        yield _figure("Search, 95 of 100 queries", place, size, p95, P95_MILLISECONDS, " ms")
        yield _figure("Search, the longest query", place, size, 1000 * times[-1], LONGEST_MILLISECONDS, " ms")
        found = sorted(_seconds_until_found(client, number) for number in range(WRITES))
        yield _figure("A write is found", place, size, found[-1], FOUND_SECONDS, " s")
        yield _figure("The index after an import, behind", place, size, behind, None, " s")
        for what, tables, bound in (
            ("Words and keys of the index, of the documents", _WORD_TABLES, INDEX_PERCENT),
            ("Texts that answers show, of the documents", _TEXT_TABLES, None),
        ):
            percent = 100 * table_bytes(database, tables) / document_bytes
            yield _figure(what, place, size, percent, bound, " %")


def _figure(what: str, place: Place, size: str, measured: float, bound: float | None, unit: str) -> Figure:
    return Figure(what, place.name, size, f"{measured:.2f}{unit}", "", measured, Want.AT_MOST, bound, unit)


class _Words:
    """Words as schemas have them: a few are everywhere, and most are rare."""

    def __init__(self, random: Random) -> None:
        self._random = random
        rare = ["".join(random.choices(_SYLLABLES.split(), k=3)) for _ in range(4000)]
        self.all = list(dict.fromkeys([*_COMMON.split(), *rare]))
        self._cumulated = _cumulated(len(self.all))
        self._names = [self._name() for _ in range(FIELD_NAMES)]
        self._cumulated_names = _cumulated(FIELD_NAMES)

    def some(self, count: int) -> list[str]:
        return self._random.choices(self.all, cum_weights=self._cumulated, k=count)

    def field_name(self) -> str:
        return self._random.choices(self._names, cum_weights=self._cumulated_names)[0]

    def _name(self) -> str:
        first, *others = self.some(self._random.choice((1, 2, 2, 3)))
        return first + "".join(map(str.capitalize, others))


def _cumulated(count: int) -> list[float]:
    return list(accumulate((number + 1) ** -0.8 for number in range(count)))


def _schema(words: _Words, number: int) -> dict[str, Any]:
    fields = [
        {
            "name": name,
            "type": ["null", _TYPES[len(name) % len(_TYPES)]],
            "default": None,
            **({"doc": f"The {' '.join(words.some(3))} of the {words.some(1)[0]}."} if len(name) % 2 else {}),
        }
        for name in {words.field_name(): None for _ in range(FIELDS)}
    ]
    return {
        "name": " ".join(words.some(2)),
        "description": f"What a {' '.join(words.some(3))} has",
        "labels": {"team": f"team{number % 40}"},
        "format": "Avro/1.11",
        "contenttype": "application/json",
        "schema": {
            "type": "record",
            "name": "".join(map(str.capitalize, words.some(2))) + str(number),
            "namespace": f"com.example.{words.some(1)[0]}.events.v1",
            "fields": fields,
        },
    }


def _fill(client: httpx.Client, words: _Words, start: int) -> int:
    """Makes a Group of schemas; returns the bytes of their documents."""
    schemas = {f"{words.field_name()}{number}": _schema(words, number) for number in range(start, start + EACH)}
    body = dumps({f"group{start // EACH}": {"schemas": schemas}})
    client.post("/schemagroups", content=body).raise_for_status()
    return sum(len(dumps(schema["schema"])) for schema in schemas.values())


def _queries(words: _Words, random: Random) -> Iterator[str]:
    """Queries of people: mostly one or two words, some of which nearly all schemas have."""
    for number in range(QUERIES):
        found = words.some(2)
        match number % 8:
            case 0 | 1:
                yield found[0]
            case 2:
                yield random.choice(words.all)[:3]
            case 3:
                yield f"{found[0]} {found[1]}"
            case 4:
                yield f"{found[0]}{found[1].capitalize()}"
            case 5:
                yield f'"{found[0]} {found[1]}"'
            case 6:
                yield f"{found[0]} in:field type:schemagroups.schemas"
            case _:
                yield f"{found[0]} group:/schemagroups/group{random.randrange(20)}"
    yield from ("i", "id", "o", "a b", '"order id"', "type:schemagroups.schemas", "format:avro", "id order customer")


def _seconds(client: httpx.Client, query: str) -> float:
    began = time.perf_counter()
    client.get("/-/search", params={"q": query}).raise_for_status()
    return time.perf_counter() - began


def _seconds_until_found(client: httpx.Client, number: int) -> float:
    document = {"format": "Own/1"}
    client.put(f"/schemagroups/fresh/schemas/fresh{number}x$details", json=document).raise_for_status()
    began = time.perf_counter()
    while client.get("/-/search", params={"q": f"fresh{number}x"}).json()["count"] == 0:
        time.sleep(0.01)
    return time.perf_counter() - began


def wait_for_index(client: httpx.Client) -> None:
    """Waits until searches find all that was written."""
    head = client.get("/-/log/head").json()["position"]
    while client.get("/-/search", params={"q": "id", "limit": "1"}).json()["position"] < head:
        time.sleep(0.2)


def wait_for_merges(database: str) -> None:
    """Waits until the server has merged what it merges while nothing is written."""
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    lows: list[int] | None = None
    while True:
        with engine.connect() as connection:
            found = list(connection.exec_driver_sql("SELECT low FROM search_segment ORDER BY low").scalars())
        if found == lows:
            return
        lows = found
        time.sleep(MERGE_SECONDS)


def table_bytes(database: str, tables: Sequence[str]) -> int:
    """The bytes that some tables and their indexes take."""
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            names = ", ".join(f"'{name}'" for name in tables)
            return int(connection.exec_driver_sql(_SQLITE_SIZE.format(names)).scalar_one())
        sizes = " + ".join(f"pg_total_relation_size('{name}')" for name in tables)
        return int(connection.exec_driver_sql(f"SELECT {sizes}").scalar_one())
