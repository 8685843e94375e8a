"""Proves that the tables of a lake are what the log says.

The table `log` must be an unbroken chain of hashes, optionally that of another copy of the log. The table `entities`
must have the state hash that the log has at its position: a hash over every attribute of every entity. Each other table
is computed again from `log` and `documents`, and compared by the number and the hashes of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from annals.projections.log.table_rows import image_hash
from annals.spark_projections.arrow_batches import Batches, record_batch, spark_columns
from annals.spark_projections.lake.append import Lake, compute_rows
from annals.spark_projections.lake.rows import REMOVED
from annals.spark_projections.lake.shuffles import sized_shuffles
from annals.spark_projections.lake.tables import DOCUMENTS, LOG, TABLES
from annals.spark_projections.log_schema import LogHead
from annals.spark_projections.spark_errors import error_line
from annals.spark_projections.verify_log import LOG_START, ChainAnchors, UnverifiedLog, verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENTITIES: Final = "entities"
_IMAGE_COLUMNS: Final = ("xid", "type", "epoch", "attributes", "private")
_SUM_SCHEMA: Final = pa.schema([("sum", pa.binary())])
_MODULUS: Final = 1 << 256
_HASH_BYTES: Final = 32
#: Tables that are compared at the same time.
_CONCURRENT: Final = 2
#: Errors of files that are missing or damaged.
_UNREADABLE: Final = (PySparkException, Py4JJavaError)


class TableReport(NamedTuple):
    """The result for one table. finding: what is wrong; empty for nothing."""

    name: str
    position: int
    rows: int
    finding: str = ""


class LakeReport(NamedTuple):
    """The result for a lake.

    head: the end of `log`. statehash: of `entities` at its position, in hex; the log has it there. Empty where there is
    no such table, because a lake may have some of the tables only.
    """

    head: LogHead
    statehash: str
    tables: tuple[TableReport, ...]

    @property
    def summary(self) -> str:
        """What is proven, if no table has a finding."""
        proven = f"position {self.head.position}, chain {self.head.chain}"
        if not self.statehash:
            return f"{proven}; the state is not proven, because there is no table {_ENTITIES}"
        position = next(table.position for table in self.tables if table.name == _ENTITIES)
        place = f" at position {position}" if position != self.head.position else ""
        return f"{proven}, state {self.statehash}{place}"


def verify(lake: Lake, anchors: ChainAnchors | None = None) -> LakeReport:
    """The results of all tables that exist.

    anchors: hashes of other copies of the log; see `verify_log`.
    Raises: NoTables.
    """
    names = [name for name in lake.existing_tables() if name in TABLES and name != LOG]
    head, log_report = _verify_log(lake, anchors)
    state = _state_of_table(lake) if _ENTITIES in names else b""
    with sized_shuffles(lake.spark, head.position), ThreadPoolExecutor(_CONCURRENT) as pool:
        reports = pool.map(lambda name: _verify_table(lake, name, state), names)
        return LakeReport(head, state.hex(), (log_report, *reports))


def _state_of_table(lake: Lake) -> bytes:
    """The state hash of the table `entities`; empty if its files cannot be read, which its own report then says."""
    try:
        return state_hash(lake.table(_ENTITIES).read())
    except _UNREADABLE:
        return b""


def state_hash(entities: DataFrame) -> bytes:
    """The state hash of rows of the table `entities`, computed from their columns."""
    sums = entities.select(*_IMAGE_COLUMNS).mapInArrow(_to_sums, spark_columns(_SUM_SCHEMA)).collect()
    return (sum(int.from_bytes(row[0]) for row in sums) % _MODULUS).to_bytes(_HASH_BYTES)


def _to_sums(batches: Batches) -> Batches:
    total = 0
    for batch in batches:
        rows = zip(*(batch.column(name).to_pylist() for name in _IMAGE_COLUMNS), strict=True)
        total += sum(int.from_bytes(image_hash(*row)) for row in rows)
    yield record_batch([((total % _MODULUS).to_bytes(_HASH_BYTES),)], _SUM_SCHEMA)


def _verify_log(lake: Lake, anchors: ChainAnchors | None) -> tuple[LogHead, TableReport]:
    try:
        return _verified_log(lake, anchors)
    except _UNREADABLE as error:
        return LOG_START, _unreadable(lake, LOG, error)


def _verified_log(lake: Lake, anchors: ChainAnchors | None) -> tuple[LogHead, TableReport]:
    position = lake.table(LOG).position()
    rows = lake.table(LOG).read().count()
    if not position and not rows:
        return LOG_START, TableReport(LOG, position, rows, "it is missing")
    try:
        head = verify_log(lake.log(0, max(position, rows)), anchors)
    except UnverifiedLog as error:
        return LogHead(position, ""), TableReport(LOG, position, rows, str(error))
    finding = "" if head.position == position == rows else f"it has {rows} events, and its position is {position}"
    return head, TableReport(LOG, position, rows, finding)


def _verify_table(lake: Lake, name: str, state: bytes) -> TableReport:
    try:
        stored = lake.table(name)
        position, rows = stored.position(), stored.read()
        findings = _findings(lake, name, position, rows, state)
        return TableReport(name, position, rows.count(), next(findings, ""))
    except _UNREADABLE as error:
        return _unreadable(lake, name, error)


def _unreadable(lake: Lake, name: str, error: Exception) -> TableReport:
    return TableReport(name, lake.table(name).position(), 0, f"it cannot be read: {error_line(error)}")


def _findings(lake: Lake, name: str, position: int, rows: DataFrame, state: bytes) -> Iterator[str]:
    logged = lake.table(LOG).position()
    if not logged:
        yield "it cannot be compared, because log is missing"
    if position > logged:
        yield "it is further than log"
    if name == DOCUMENTS:
        damaged = rows.where(f.sha2("content", 256) != f.col("sha256")).count()
        if damaged or rows.count() != rows.select("sha256").distinct().count():
            yield f"{damaged} documents do not have their hash" if damaged else "a document is there twice"
        return
    if name == _ENTITIES and state != _logged_state(lake, position):
        yield "the state hash differs from the one that the log has at this position"
    wanted = compute_rows(lake, name, 0, position)
    if REMOVED in wanted.columns:
        wanted = wanted.where(~f.col(REMOVED))
    names = TABLES[name].names
    if _fingerprint(rows.select(*names)) != _fingerprint(wanted.select(*names)):
        key = TABLES[name].sort
        surplus = rows.select(*names).exceptAll(wanted.select(*names)).select(*key)
        missing = wanted.select(*names).exceptAll(rows.select(*names)).select(*key)
        first = surplus.unionAll(missing).orderBy(*key).first()
        at = first.asDict() if first else dict.fromkeys(key)
        yield f"its rows are not those that the log gives; the first one that differs has {at}"


def _logged_state(lake: Lake, position: int) -> bytes:
    row = lake.log(position - 1, position).select("statehash").first()
    return bytes(row[0]) if row else b""


def _fingerprint(rows: DataFrame) -> tuple[int, int]:
    """The number of rows, and the sum of their hashes; the same for the same rows in any order."""
    # Decimal, because the sum of 64-bit hashes does not fit into 64 bits.
    total = f.sum(f.xxhash64(*rows.columns).cast("decimal(38,0)"))
    count, found = rows.agg(f.count("*"), f.coalesce(total, f.lit(0))).collect()[0]
    return int(count), int(found)
