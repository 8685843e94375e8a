"""Brings the tables of a lake up to the end of a log.

The table `log` takes the events from the source, after a proof that they continue its chain of hashes. All other tables
are functions of that table and of `documents`, so each goes on from its own position, whatever the others are at. A
process may end between any two steps: what it did not finish is done by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as f

from annals.spark_projections.hadoop_paths import spark_uri, with_s3a_scheme
from annals.spark_projections.lake.formats import FormatName, stored_table
from annals.spark_projections.lake.formats.contract import LakeError, NoTables, ReportStep, StoredTable
from annals.spark_projections.lake.formats.folders import check_folders
from annals.spark_projections.lake.rows import IN_FILE_ORDER, REMOVED, ROWS, LogPart, document_hashes
from annals.spark_projections.lake.shuffles import sized_shuffles
from annals.spark_projections.lake.source import LogSource
from annals.spark_projections.lake.tables import ALL_TABLES, DOCUMENTS, LOG, TABLES
from annals.spark_projections.lake.writer_lock import writer_lock
from annals.spark_projections.log_schema import LogHead, fill_later_columns
from annals.spark_projections.verify_log import LOG_START, UnverifiedLog, verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """The tables at a place. uri: a folder that Spark can write to."""

    def __init__(self, spark: SparkSession, format: FormatName, uri: str) -> None:
        self.spark = spark
        self.format = format
        self._root = (with_s3a_scheme(uri) if "://" in uri else spark_uri(uri)).rstrip("/")
        self.uri = uri

    def table(self, name: str) -> StoredTable:
        """A table, which need not exist yet."""
        return stored_table(self.spark, self.format, self._root, ALL_TABLES[name])

    def existing_tables(self, names: Collection[str] = tuple(ALL_TABLES)) -> list[str]:
        """Those of some names whose tables exist. Raises: NoTables where there is none."""
        existing_names = [name for name in names if self.table(name).position()]
        if not existing_names:
            named = f" named {' or '.join(names)}" if len(names) < len(ALL_TABLES) else ""
            raise NoTables(f"there are no tables{named} of the format {self.format} at {self.uri}")
        return existing_names

    def writer_lock(self) -> AbstractContextManager[None]:
        """See `writer_lock.writer_lock`. Raises: LakeError for a folder that is no lake of this format."""
        check_folders(self.spark, self.format, self._root)
        return writer_lock(self.spark, self._root)

    def add_observations(self, rows: Mapping[str, DataFrame], taken: datetime) -> None:
        """Adds rows of `observations` by table. taken: their time, which is the position of these tables."""
        with self.writer_lock():
            for name, found in rows.items():
                self.table(name).commit(found, int(taken.timestamp() * 1_000_000), lambda step: None)

    def log(self, after: int, end: int) -> DataFrame:
        """The events between two positions, as a log has them."""
        return fill_later_columns(self.table(LOG).read().where(f.col("position").between(after + 1, end)))

    def time_of(self, position: int) -> str:
        """The time of the interaction that ends at a position of the table `log`; empty for 0."""
        return str(self.log(position - 1, position).select("time").collect()[0][0]) if position else ""

    def head(self) -> LogHead:
        """The end of the table `log`. Raises: LakeError where the table lacks its last event."""
        position = self.table(LOG).position()
        if not position:
            return LOG_START
        last = self.log(position - 1, position).select(f.lower(f.hex("chain"))).collect()
        if not last:
            raise LakeError(f"the table log lacks its last event, at position {position}")
        return LogHead(position, str(last[0][0]))


class AnotherLog(UnverifiedLog):
    """A source has another log than the lake."""


class AppendReport(NamedTuple):
    """What a run has done. position: of the table `log`. events: that the log had more than before."""

    position: int
    events: int


def append(
    lake: Lake,
    source: LogSource,
    names: Collection[str] = tuple(TABLES),
    report_step: ReportStep = lambda step: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> AppendReport:
    """Brings the log, and the tables of some names, up to the end of a source.

    report_step: called after each step. is_stopped: called before each table; the next run makes those that are left.
    Raises: UnverifiedLog for events that do not continue the log of the lake, and for a log that ends before it;
    AnotherLog; LakeError.
    """
    before = lake.head()
    # First, because a source that cannot be read leaves no folder behind.
    stated_end = source.end() if source.end is not None else 0
    if source.end is not None and stated_end < before.position:
        _check_same_log(source, before)  # a registry refuses to return its log from behind its end
    new = source.read(before.position)
    with lake.writer_lock():
        end = _append_log(lake, new, source, before, stated_end, report_step)
        for name in TABLES:
            if name in names and name != LOG and not is_stopped():
                _append_table(lake, name, source, end, report_step)
    return AppendReport(end, end - before.position)


def _append_log(
    lake: Lake, new: DataFrame, source: LogSource, head: LogHead, stated_end: int, report_step: ReportStep
) -> int:
    if not source.is_stable:
        # The rows that are written must be those that were verified.
        new = new.persist()
    try:
        end = _verify_new(new, source, head)
        if end.position < stated_end:
            raise UnverifiedLog(
                f"the log ends at position {stated_end}, and only events up to {end.position} are shown"
            )
        if end == head:
            _check_same_log(source, head)
        report_step(f"{LOG}: verified")
        if end.position > head.position:
            rows = ROWS[LOG](LogPart(new, new, new))
            lake.table(LOG).commit(rows, end.position, _prefixed(report_step, LOG), after=head.position)
            report_step(f"{LOG}: committed")
    finally:
        new.unpersist()
    return end.position


def _verify_new(new: DataFrame, source: LogSource, head: LogHead) -> LogHead:
    """The end of new events that continue the log of the lake. Raises: UnverifiedLog."""
    try:
        return verify_log(new, start=head)
    except UnverifiedLog:
        # The events of another log do not continue this one either, though nobody has changed them.
        _check_same_log(source, head)
        raise


def _check_same_log(source: LogSource, head: LogHead) -> None:
    """Checks that a source has the log of the lake, up to the end of that. Raises: UnverifiedLog, AnotherLog."""
    chain = source.chain_at(head.position) if head.position else None
    if chain is None and head.position and not source.may_forget:
        raise UnverifiedLog(f"no interaction ends at position {head.position}, up to which the lake has its log")
    if chain is not None and chain != head.chain:
        raise AnotherLog(f"it is another log than that of the lake: the chain hash differs at position {head.position}")


def _append_table(lake: Lake, name: str, source: LogSource, end: int, report_step: ReportStep) -> None:
    table = lake.table(name)
    position = table.position()
    if position > end:
        raise LakeError(f"{name} is at position {position}, but log only at {end}; remove the folder of {name}")
    if position == end:
        return
    with sized_shuffles(lake.spark, end - position):
        rows = compute_rows(lake, name, position, end, source)
        is_in_order = name in IN_FILE_ORDER and (not position or TABLES[name].key is None)
        if not is_in_order:
            rows = rows.persist()  # its order is found by looking at the rows before they are written
        try:
            table.commit(rows, end, _prefixed(report_step, name), position, is_in_order)
        finally:
            rows.unpersist()
    report_step(f"{name}: committed")


def compute_rows(lake: Lake, name: str, position: int, end: int, source: LogSource | None = None) -> DataFrame:
    """The rows of a table for the events between two positions. source: of documents, for the table `documents`."""
    new, documents = lake.log(position, end), lake.table(DOCUMENTS).read()
    if name == DOCUMENTS:
        assert source is not None, "documents are no function of the log"
        missing = document_hashes(new).join(documents, "sha256", "left_anti")
        return source.documents(missing, position).select(
            "sha256", f.length("content").cast("bigint").alias("size"), "content"
        )
    rows = ROWS[name](LogPart(new, lake.log(0, end), documents, is_first=not position))
    return rows.select(*ALL_TABLES[name].names, *({REMOVED} & set(rows.columns)))


def _prefixed(report_step: ReportStep, name: str) -> Callable[[str], None]:
    return lambda step: report_step(f"{name}: {step}")
