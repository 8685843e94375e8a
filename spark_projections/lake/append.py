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
from annals.spark_projections.lake.formats.contract import (
    LakeError,
    NoTables,
    ReportStep,
    StoredTable,
    check_position,
)
from annals.spark_projections.lake.formats.folders import check_folders
from annals.spark_projections.lake.rows import IN_FILE_ORDER, REMOVED, ROWS, LogPart, document_hashes
from annals.spark_projections.lake.shuffles import sized_shuffles
from annals.spark_projections.lake.source import LogSource
from annals.spark_projections.lake.tables import ALL_TABLES, DOCUMENTS, LOG, TABLES
from annals.spark_projections.lake.writer_lock import writer_lock
from annals.spark_projections.log_schema import LogHead, fill_later_columns
from annals.spark_projections.sources.kafka import RecordsMissing
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
        """Adds rows of `observations` by table.

        taken: their time, which is the position of these tables, in microseconds. Where it is not later than that of
        the newest rows, as after a clock was set back, the position is the next number: Delta skips a transaction whose
        position is not higher than the last one.
        """
        with self.writer_lock():
            for name, found in rows.items():
                table = self.table(name)
                position = max(int(taken.timestamp() * 1_000_000), table.position() + 1)
                table.commit(found, position, lambda step: None)

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
        if (chain := self.chain_at(position)) is None:
            raise LakeError(f"the table log lacks its last event, at position {position}")
        return LogHead(position, chain)

    def chain_at(self, position: int) -> str | None:
        """The chain hash in hex of the interaction with the event at a position; None where `log` lacks that event."""
        found = self.log(position - 1, position).select(f.lower(f.hex("chain"))).collect()
        return str(found[0][0]) if found else None


class AnotherLog(UnverifiedLog):
    """A source has another log than the lake, or only the beginning of the same one."""


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
    Raises: UnverifiedLog for events that do not continue the log of the lake; AnotherLog; RecordsMissing; LakeError.
    """
    before = lake.head()
    # First, because a source that cannot be read leaves no folder behind.
    stated_end = source.end().position if source.may_hide else 0
    if source.may_hide and stated_end < before.position:
        _check_same_log(lake, source, before)  # a registry refuses to return its log from behind its end
    try:
        new = source.read(before.position)
    except RecordsMissing:
        _check_same_log(lake, source, before)  # the interactions of another log end at other positions
        raise
    with lake.writer_lock():
        _check_log_position(lake, before.position)
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
        end = _verify_new(lake, new, source, head)
        if end.position < stated_end:
            raise UnverifiedLog(
                f"the log ends at position {stated_end}, and only events up to {end.position} are shown"
            )
        if end == head:
            _check_same_log(lake, source, head)
        report_step(f"{LOG}: verified")
        if end.position > head.position:
            rows = ROWS[LOG](LogPart(new, new, new))
            lake.table(LOG).commit(rows, end.position, _prefixed(report_step, LOG), after=head.position)
            report_step(f"{LOG}: committed")
    finally:
        new.unpersist()
    return end.position


def _verify_new(lake: Lake, new: DataFrame, source: LogSource, head: LogHead) -> LogHead:
    """The end of new events that continue the log of the lake. Raises: UnverifiedLog."""
    try:
        return verify_log(new, start=head)
    except UnverifiedLog:
        # The events of another log do not continue this one either, though nobody has changed them.
        _check_same_log(lake, source, head)
        raise


def _check_same_log(lake: Lake, source: LogSource, head: LogHead) -> None:
    """Checks that a source has the log of the lake, up to the end of that. Raises: AnotherLog.

    A topic may end before the lake, if it has the same log up to there: the rest may still be published.
    """
    if not head.position:
        return
    if (chain := source.chain_at(head.position)) is not None:
        _check_chain(head.position, chain, head.chain)
        return
    end = source.end()
    if 0 < end.position < head.position:
        _check_chain(end.position, end.chain, lake.chain_at(end.position))
    if end.position < head.position and not source.may_forget:
        raise AnotherLog(
            f"the source ends at position {end.position}, but the lake is at {head.position}: it was restored from an"
            " older backup, or is not up to date"
        )


def _check_chain(position: int, chain: str, expected: str | None) -> None:
    """Compares the chain hash of a source with that of the lake. Raises: AnotherLog."""
    if chain != expected:
        raise AnotherLog(f"it is another log than that of the lake: the chain hash differs at position {position}")


def _check_log_position(lake: Lake, position: int) -> None:
    """Raises: LakeBusy where another process has brought the table `log` from a position to another one."""
    check_position(ALL_TABLES[LOG], lake.table(LOG).position(), position)


def _append_table(lake: Lake, name: str, source: LogSource, end: int, report_step: ReportStep) -> None:
    table = lake.table(name)
    position = table.position()
    if position > end:
        _check_log_position(lake, end)  # without a lock, on some filesystems, another process may append meanwhile
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
