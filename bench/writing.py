"""Small writes over HTTP, from a client process, compared with the cheapest known way to make the same promise.

The floor puts one event and one row into a table each, in durable transactions that as many writes share as there are
clients: no checks, no hashes, no HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.pool import Pool
from statistics import median
from typing import Final

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, Table, Text

from annals.commands.store.database import sql
from annals.commands.store.database.engine import WriterConnection, open_engine
from annals.domain.values.json_text import dumps
from bench import client, samples
from bench.client import Workload, workloads
from bench.figures import Figure, Want
from bench.places import Place, serving

#: The percentage of the floor that a write may be expected to reach.
_WANTED: Final = 10

_METADATA: Final = MetaData()
_EVENTS: Final = Table(
    "bare_event",
    _METADATA,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("state", LargeBinary),
)
_ROWS: Final = Table("bare_row", _METADATA, Column("key", Text, primary_key=True), Column("attributes", Text))


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """Schemas created and Versions added in a second, by clients of a served registry."""
    rounds, seconds = (1, 0.3) if quick else (5, 2.0)
    with (
        place.fresh() as (database, folder),
        serving(database, folder) as served,
        get_context("spawn").Pool(1) as pool,
    ):
        pool.apply(client.prepare, (served.url,))
        start = 0
        for number, workload in (*workloads("Create"), *workloads("Add a Version")):
            measured: list[float] = []
            for _ in range(rounds):
                rate, start = pool.apply(client.rate, (served.url, number, start, seconds))
                measured.append(rate)
            yield _figure(workload, place, median(measured), rounds, pool, seconds)


def _figure(workload: Workload, place: Place, measured: float, rounds: int, pool: Pool, seconds: float) -> Figure:
    with place.fresh() as (database, _):
        floor = pool.apply(floor_rate, (database, workload.connections, seconds))
    share = 100 * measured / floor
    size = f"{rounds} rounds"
    return Figure(
        workload.name, place.name, size, f"{measured:,.0f}/s", f"{floor:,.0f}/s", share, Want.AT_LEAST, _WANTED, " %"
    )


def floor_rate(database: str, together: int, seconds: float) -> float:
    """Events a second that are durable, each with a row; `together` of them share a transaction."""
    engine = open_engine(database)
    _METADATA.create_all(engine)
    state = dumps(samples.schema(0))
    with closing(WriterConnection(engine)) as writer:
        with engine.begin() as connection:  # its lock belongs to this table
            connection.exec_driver_sql("CREATE TABLE log (position BIGINT)")
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            numbers = range(done, done + together)
            with writer.transaction() as connection, sql.combining_writes(connection):
                sql.insert(connection, _EVENTS, [(number, state) for number in numbers])
                sql.insert(connection, _ROWS, [(f"!schemas!{number}", state.decode()) for number in numbers])
            done += together
        rate = done / (time.perf_counter() - began)
    engine.dispose()
    return rate
