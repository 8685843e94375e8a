"""Lakes for tests: sources in memory, and what each table has to contain."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from annals.commands.store.hashes import EMPTY_HASH, ChainHasher
from annals.projections.log.documents import document_content
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row
from annals.spark_projections.lake.append import Lake
from annals.spark_projections.lake.formats import FormatName
from annals.spark_projections.lake.rows import ROWS, LogPart
from annals.spark_projections.lake.source import LogSource
from annals.spark_projections.lake.tables import DOCUMENTS, TABLES
from annals.spark_projections.log_schema import LOG_SCHEMA, LogHead
from tests.spark_projections.served_registry import log_rows
from tests.support.registries.requests import OpenRegistry, Request, RequestClock

FORMATS: Final[tuple[FormatName, ...]] = ("delta", "parquet", "iceberg")


def each_format(*short: FormatName) -> list[object]:
    """All formats as parameters of a test; those that are not in `short` are marked as long."""
    return [pytest.param(format, marks=() if format in short else pytest.mark.long) for format in FORMATS]


class ExampleLog:
    """The log and the documents of a SQLite store, in memory."""

    def __init__(
        self,
        spark: SparkSession,
        rows: Iterable[LogTableRow],
        documents: Iterable[tuple[str, bytes]],
        path: Path = Path(),
    ) -> None:
        self.spark = spark
        self.path = path
        self.rows = list(rows)
        self.documents = spark.createDataFrame(list(documents), "sha256 string, content binary")
        self._computed: dict[tuple[str, int | None, int], list[tuple[Any, ...]]] = {}

    @classmethod
    def of(cls, spark: SparkSession, path: Path) -> ExampleLog:
        """The log and the documents of the store in a file."""
        with sqlite3.connect(path) as connection:
            stored = connection.execute("SELECT sha256, bytes FROM document").fetchall()
        documents = [(sha256, document_content(sha256, value)) for sha256, value in stored]
        return cls(spark, log_rows(f"sqlite:///{path}"), documents, path)

    def log(self, after: int = 0, end: int | None = None) -> DataFrame:
        """The events between two positions."""
        wanted = [tuple(row) for row in self.rows if after < row.position <= (end or self.rows[-1].position)]
        return self.spark.createDataFrame(wanted, LOG_SCHEMA)

    def epochs_asof(self, position: int) -> set[tuple[str, int]]:
        """The lower-cased xids and epochs of the Groups and Versions that the registry returns `?asof` a position."""
        return asyncio.run(_epochs_asof(self.path, position))

    def ends(self) -> list[int]:
        """The positions at which interactions end."""
        return sorted({row.last for row in self.rows})

    def halves(self) -> tuple[int, int]:
        """The end of an interaction in the middle, and the end of the log."""
        ends = self.ends()
        return ends[len(ends) // 2], ends[-1]

    def source(self, end: int | None = None) -> LogSource:
        """A source that ends at a position."""
        return LogSource(
            lambda after: self.log(after, end),
            lambda hashes, after: self.documents.join(hashes, "sha256", "left_semi"),
            lambda position: self._chain_at(position) if position <= (end or position) else None,
            lambda: self._head(end),
            is_stable=True,
        )

    def _chain_at(self, position: int) -> str | None:
        return next((row.chain.hex() for row in self.rows if row.position == position), None)

    def _head(self, end: int | None) -> LogHead:
        last = self.rows[(end or 0) - 1]
        return LogHead(last.position, last.chain.hex())

    def table(self, name: str, end: int | None = None) -> list[tuple[Any, ...]]:
        """The rows of a table at a position, computed from the log in one step, once for all tests."""
        key = name, end, time.timezone  # Spark returns times in the time zone of the process
        if key not in self._computed:
            self._computed[key] = self._compute(name, end)
        return self._computed[key]

    def _compute(self, name: str, end: int | None) -> list[tuple[Any, ...]]:
        log, documents = self.log(0, end), with_sizes(self.documents)
        if name == DOCUMENTS:
            return plain(documents.where(documents.sha256.isin(self._document_hashes(end))))
        rows = ROWS[name](LogPart(log, log, documents))
        if "_removed" in rows.columns:
            rows = rows.where("NOT _removed")
        return plain(rows.select(*TABLES[name].names))

    def _document_hashes(self, end: int | None = None) -> list[str]:
        """The hashes of the documents that events up to a position refer to."""
        states = [json.loads(row.state) for row in self.rows if row.position <= (end or self.rows[-1].position)]
        private = [state["private"] for state in states if state.get("private")]
        hashes = {one.get("document") or one.get("facade", {}).get("document") for one in private}
        return sorted(hashes - {None})


async def _epochs_asof(path: Path, position: int) -> set[tuple[str, int]]:
    moment = RequestClock()
    app = create_app(Settings(database=f"sqlite:///{path}", hosts="registry"), clock=moment.clock, new_id=moment.new_id)
    async with app.router.lifespan_context(app):
        registry = OpenRegistry(app, moment)
        answer = await registry.ask(Request("GET", f"/schemagroups?inline=*&asof={position}", None, {}))
        assert answer.status == 200, answer
        return set(_epochs(json.loads(answer.content)))


def _epochs(value: Any) -> Iterator[tuple[str, int]]:
    """The lower-cased xids and epochs of Groups and Versions at any depth."""
    if not isinstance(value, dict):
        return
    xid = value.get("xid")
    if isinstance(xid, str) and (xid.count("/") == 2 or "/versions/" in xid):
        yield xid.lower(), value["epoch"]
    for member in value.values():
        yield from _epochs(member)


def log_of_another_registry(rows: Iterable[LogTableRow], url: str) -> list[LogTableRow]:
    """A log with the same events, which is valid: its chain hashes are those of a registry with another URL."""
    chain, chained = EMPTY_HASH, list[LogTableRow]()
    for _, events in groupby(rows, attrgetter("first")):
        changed = [event._replace(registry_url=url) for event in events]
        hasher = ChainHasher(chain, interaction_of(changed[0]))
        for event in changed:
            hasher.add(log_row(event))
        chain = hasher.digest(changed[-1].statehash)
        chained += [event._replace(chain=chain) for event in changed]
    return chained


def with_sizes(documents: DataFrame) -> DataFrame:
    """Documents as the lake stores them."""
    return documents.selectExpr("sha256", "cast(length(content) as bigint) AS size", "content")


def plain(rows: DataFrame) -> list[tuple[Any, ...]]:
    """Rows that can be compared, in any order."""
    return sorted((tuple(row) for row in rows.collect()), key=str)


def check_source(source: LogSource, rows: list[LogTableRow]) -> None:
    """Checks that a source tells its log from another one, and from a longer one, at any position of a lake."""
    end = LogHead(rows[-1].position, rows[-1].chain.hex())
    inside = next(row for row in rows if row.first < row.position < row.last)
    assert source.end() == end
    assert source.chain_at(end.position) == end.chain
    assert source.chain_at(end.position + 1) is None
    # another log may have an interaction there that ends later
    other = source.chain_at(inside.position)
    assert other is not None and other not in {row.chain.hex() for row in rows if row.last == inside.position}


def check_lake(lake: Lake, example_log: ExampleLog, end: int | None = None) -> None:
    """Compares each table with its rows computed from the log in one step."""
    for name, table in TABLES.items():
        stored = lake.table(name)
        assert stored.position() == (end or example_log.rows[-1].position), name
        assert plain(stored.read().select(*table.names)) == example_log.table(name, end), name
