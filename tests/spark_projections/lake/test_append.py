"""Tables of a lake equal those computed in one step, however the log arrives, and wherever a writer stops."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.lake import Lake, LakeBusy, append
from annals.spark_projections.lake.append import AnotherLog, compute_rows
from annals.spark_projections.lake.formats import FormatName
from annals.spark_projections.lake.formats.contract import LakeError, NoTables
from annals.spark_projections.lake.formats.parquet import ParquetLakeTable
from annals.spark_projections.lake.observations import observed_rows
from annals.spark_projections.lake.optimize import optimize
from annals.spark_projections.lake.tables import TABLES
from annals.spark_projections.sources.kafka import RecordsMissing
from annals.spark_projections.verify_log import UnverifiedLog
from tests.spark_projections.lake.conftest import OBSERVED, FullLake, NewLake
from tests.spark_projections.lake.example import LINKS, SUBSCRIPTIONS
from tests.spark_projections.lake.lakes import ExampleLog, check_lake, each_format, log_of_another_registry, plain
from tests.support.polling import until

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]


class _Stopped(Exception):
    """The writer ended here."""


class _StopsOnce:
    """Stops a writer at the first step at which it has not stopped before, so that it stops once at each step."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, step: str) -> None:
        if step not in self.seen:
            self.seen.append(step)
            raise _Stopped(step)


@pytest.mark.parametrize("format", each_format("delta"))
def test_the_tables_follow_the_log(full_lake: FullLake, example_log: ExampleLog, format: str) -> None:
    check_lake(full_lake(format), example_log)


@pytest.mark.parametrize("format", each_format())
def test_each_point_at_which_a_writer_ends(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, format: str
) -> None:
    lake = new_lake(format, tmp_path)
    for end in example_log.halves():
        stops = _StopsOnce()
        while True:
            try:
                append(lake, example_log.source(end), report_step=stops)
                break
            except _Stopped:
                continue
        assert {step for step in stops.seen if step.endswith("committed")} == {f"{name}: committed" for name in TABLES}
    check_lake(lake, example_log)


def test_a_writer_that_is_stopped_completes_its_table(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path
) -> None:
    lake = new_lake("parquet", tmp_path)
    append(lake, example_log.source(), is_stopped=lambda: lake.table("interactions").position() > 0)
    assert lake.existing_tables() == ["log", "documents", "interactions"]


@pytest.mark.parametrize("format", each_format("delta"))
def test_a_write_that_fails_changes_nothing(full_lake: FullLake, example_log: ExampleLog, format: str) -> None:
    # files may have been written by then; no reader sees them
    lake = full_lake(format)
    for name in ("changes", "entities"):
        stored = lake.table(name)
        before, position = plain(stored.read()), stored.position()
        rows = compute_rows(lake, name, 0, position)
        broken = rows.withColumn("xid", f.raise_error(f.lit("a disk is full")).cast("string"))
        with pytest.raises(PySparkException, match="a disk is full"):
            stored.commit(broken, position + 5, lambda step: None)
        assert lake.table(name).position() == position
        assert plain(lake.table(name).read()) == before


@pytest.mark.parametrize("format", each_format("iceberg"))
@pytest.mark.parametrize("name", ["interactions", pytest.param("entities", marks=pytest.mark.long)])
def test_of_two_transactions_at_once_one_fails(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, format: str, name: str
) -> None:
    # the slow transaction finds the other one after it has written its files, which no reader sees
    lake, (half, end) = new_lake(format, tmp_path), example_log.halves()
    append(lake, example_log.source(half), [name])
    append(lake, example_log.source(), [])
    # with its own settings and views, as another process has
    other = Lake(lake.spark.newSession(), lake.format, lake.uri)
    started, may_end = tmp_path / "started", tmp_path / "may end"
    slow_rows = _slow(compute_rows(lake, name, half, end), started, may_end)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(lake.table(name).commit, slow_rows, end, lambda step: None, half)
        until(lambda: started.exists() or slow.done(), 60)
        other.table(name).commit(compute_rows(other, name, half, end), end, lambda step: None, half)
        may_end.touch()
        with pytest.raises(LakeBusy, match=f"another process has changed {name}"):
            slow.result()
    # rows are refused as well if they continue from a position that the table has passed
    with pytest.raises(LakeBusy, match=f"another process has changed {name} from position {half} to {end}"):
        lake.table(name).commit(compute_rows(lake, name, half, end), end + 1, lambda step: None, half)
    assert lake.table(name).position() == end
    assert plain(lake.table(name).read()) == example_log.table(name)


def _slow(rows: DataFrame, started: Path, may_end: Path) -> DataFrame:
    """Rows that are returned once the file `may_end` exists. started: a file that their first request creates."""

    def wait(batches: Batches) -> Batches:
        # Only the first request waits, because each takes a processor that the other transaction may need.
        if not started.exists():
            started.touch()
            while not may_end.exists():
                time.sleep(0.02)
        yield from batches

    return rows.coalesce(1).mapInArrow(wait, rows.schema)


def test_a_lake_has_one_writer(full_lake: FullLake, example_log: ExampleLog) -> None:
    lake = full_lake("delta")
    with lake.writer_lock(), pytest.raises(LakeBusy, match="/delta at the moment"):
        append(lake, example_log.source())
    append(lake, example_log.source())


@pytest.mark.parametrize("moment", ["before the lock", "without a lock"])
def test_a_writer_that_comes_second(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    # the tables of the other writer are right, so nothing has to be removed; with --follow, it tries again
    lake, names, (half, end) = new_lake("parquet", tmp_path), ("log", "interactions"), example_log.halves()
    append(lake, example_log.source(half), names)
    other, source = new_lake("parquet", tmp_path), example_log.source(half)

    def read(after: int) -> DataFrame:
        if moment == "before the lock":
            append(other, example_log.source(), names)
        return source.read(after)

    def report_step(step: str) -> None:
        if moment == "without a lock" and step == "log: verified":
            monkeypatch.setattr(other, "writer_lock", nullcontext)  # as on filesystems of other machines
            append(other, example_log.source(), names)

    with pytest.raises(LakeBusy, match=f"^another process has changed log from position {half} to {end}; start again"):
        append(lake, source._replace(read=read), names, report_step)
    assert lake.table("interactions").position() == end


def test_a_log_that_is_changed_after_the_lake_is_refused(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path
) -> None:
    # P-14: events that do not continue the chain of the tables add nothing
    lake, (half, _) = new_lake("parquet", tmp_path), example_log.halves()
    append(lake, example_log.source(half), ["log"])
    changed = [row._replace(caller="mallory") if row.position > half else row for row in example_log.rows]
    with pytest.raises(UnverifiedLog, match=f"^position {half + 1}: the chain hash differs: "):
        append(lake, ExampleLog(lake.spark, changed, []).source())
    assert lake.head().position == half


def test_a_log_that_is_not_that_of_the_lake(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path) -> None:
    # also where it has nothing new, because its documents and observations would be added
    lake = new_lake("parquet", tmp_path)
    append(lake, example_log.source(), ["log"])
    *rows, last = example_log.rows
    other = ExampleLog(lake.spark, [*rows, last._replace(chain=bytes(32))], [])
    with pytest.raises(UnverifiedLog) as refused:
        append(lake, other.source())
    another = "it is another log than that of the lake: the chain hash differs at position"
    assert str(refused.value) == f"{another} {last.position}"
    assert lake.existing_tables() == ["log"]


def test_a_log_that_ends_before_the_lake(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path) -> None:
    # the same log, of an older backup or of segments that were not written yet; or that of another registry
    lake, (half, end) = new_lake("parquet", tmp_path), example_log.halves()
    append(lake, example_log.source(), ["log"])
    older = example_log.source(half)
    other = ExampleLog(lake.spark, log_of_another_registry(example_log.rows, "http://other/"), []).source(half)
    ends = f"the source ends at position {half}, but the lake is at {end}"
    another = f"it is another log than that of the lake: the chain hash differs at position {half}"
    for source, says in (
        (older, f"{ends}: it was restored from an older backup, or is not up to date"),
        (other, another),
        (other._replace(may_forget=True), another),
    ):
        with pytest.raises(AnotherLog) as refused:
            append(lake, source)
        assert str(refused.value) == says
    # to a topic, the rest may still be published
    assert append(lake, older._replace(may_forget=True), ["log"]) == (end, 0)
    assert lake.existing_tables() == ["log"]


def test_a_longer_log_that_is_not_that_of_the_lake(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path) -> None:
    # its store is not damaged, so the error names what is mistaken
    lake, (half, _) = new_lake("parquet", tmp_path), example_log.halves()
    append(lake, example_log.source(half), ["log"])
    other = ExampleLog(lake.spark, log_of_another_registry(example_log.rows, "http://other/"), []).source()
    with pytest.raises(UnverifiedLog) as refused:
        append(lake, other)
    another = "it is another log than that of the lake: the chain hash differs at position"
    assert str(refused.value) == f"{another} {half}"

    # where its topic lacks only the beginning of the interaction that has the position of the lake
    def read(after: int) -> DataFrame:
        raise RecordsMissing(f"records after position {after} are missing")

    with pytest.raises(AnotherLog, match=f"^{another} {half}$"):
        append(lake, other._replace(read=read, may_forget=True))
    with pytest.raises(RecordsMissing, match=f"^records after position {half} are missing$"):
        append(lake, example_log.source(half)._replace(read=read, may_forget=True))
    # a source that may lack what it had does not tell
    with pytest.raises(UnverifiedLog, match=f"^position {half + 1}: the chain hash differs: "):
        append(lake, other._replace(chain_at=lambda position: None, may_forget=True))
    assert (lake.existing_tables(), lake.head().position) == (["log"], half)
    append(new_lake("parquet", tmp_path / "other"), other, ["log"])


def test_a_caller_who_does_not_see_the_end_of_the_log(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path
) -> None:
    middle, end = example_log.halves()
    lake, source = new_lake("parquet", tmp_path), example_log.source(middle)
    source = source._replace(may_hide=True, end=example_log.source(end).end)
    with pytest.raises(UnverifiedLog, match=f"ends at position {end}, .* up to {middle}"):
        append(lake, source)
    with pytest.raises(NoTables):
        lake.existing_tables()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", each_format("delta", "parquet"))
def test_observations_are_added_whatever_the_clock_says(new_lake: NewLake, tmp_path: Path, format: str) -> None:
    # docs/guides/lake: each time that the registry was asked; a clock may be set back, or stand still
    lake, (first, second) = new_lake(format, tmp_path), OBSERVED
    times = (second, first, first)
    for taken in times:
        lake.add_observations(observed_rows(lake.spark, 56, SUBSCRIPTIONS[:1], LINKS[:1], taken), taken)
    for name in ("deliveries", "replication"):
        found = lake.table(name).read().selectExpr("cast(taken AS double)").collect()
        assert sorted(row[0] for row in found) == sorted(taken.timestamp() for taken in times), name


@pytest.mark.parametrize(
    ("format", "path"),
    [
        ("delta", "manifest/1.json"),
        ("delta", "log/1-7.parquet"),
        ("delta", "log/manifest/1.json"),
        ("delta", "versions/metadata/version-hint.text"),
        ("parquet", "log/_delta_log/0.json"),
        ("parquet", "log/metadata/version-hint.text"),
        ("parquet", "documents/of-mine.txt"),
        ("iceberg", "log/manifest/1.json"),
        ("iceberg", "log/_delta_log/0.json"),
    ],
)
def test_files_of_others(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, format: str, path: str) -> None:
    # segments, archives, tables of another format: maintenance would remove what it does not know
    lake = new_lake(format, tmp_path)
    file = tmp_path / format / path
    file.parent.mkdir(parents=True)
    file.write_text("of somebody else")
    with pytest.raises(LakeError, match=r"segments|is a table of the format|has other files"):
        append(lake, example_log.source(), ["log"])
    assert [found for found in (tmp_path / format).rglob("*") if found.is_file()] == [file]


@pytest.mark.parametrize("left", ["_staged_commits/", ".00000000000000000000.json.1.tmp", "00000000000000000000.crc"])
def test_a_writer_that_was_killed_while_it_made_a_table(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, left: str
) -> None:
    # a Delta table exists from its first commit on, and the folder of its commits before that
    path = tmp_path / "delta" / "log" / "_delta_log" / left
    path.parent.mkdir(parents=True)
    path.mkdir() if left.endswith("/") else path.touch()
    lake = new_lake("delta", tmp_path)
    with pytest.raises(NoTables):
        lake.existing_tables()
    append(lake, example_log.source(), ["log"])
    assert plain(lake.log(0, lake.head().position)) == plain(example_log.log())


def test_only_optimizing_removes_replaced_files(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/guides/lake: a reader may have the files of a past position open for --keep-hours, which no append knows
    lake, ends, now = new_lake("parquet", tmp_path), example_log.ends()[-3:], time.time()
    for hours, end in zip((0, 200, 400), ends, strict=True):
        monkeypatch.setattr(time, "time", lambda hours=hours: now + hours * 3600)
        append(lake, example_log.source(end), ["entities"])
    assert lake.table("entities").positions() == ends
    for end in ends:
        assert plain(lake.table("entities").read(end)) == example_log.table("entities", end)
    # the manifest of each transaction names what that one replaced, because all of it would make manifests ever longer
    manifests = sorted((tmp_path / "parquet" / "entities" / "manifest").glob("*.json"))
    retired = [path for manifest in manifests for path in json.loads(manifest.read_text())["retired"]]
    assert len(retired) == len(set(retired)) > 0
    optimize(lake, 100, ["entities"])
    assert lake.table("entities").positions() == [ends[1], ends[2], ends[2]]
    assert len([*manifests[0].parent.glob("*.json")]) == 3


def test_optimizing_keeps_what_another_process_commits(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # docs/guides/lake: filesystems without locks take a transaction at any time, such as while files are listed
    lake, (half, end), list_files = new_lake("parquet", tmp_path), example_log.halves(), ParquetLakeTable._files
    append(lake, example_log.source(half), ["entities"])
    append(lake, example_log.source(), [])
    rows = compute_rows(lake, "entities", half, end)

    def list_after_another(self: ParquetLakeTable, *arguments: str) -> list[str]:
        if not arguments and lake.table("entities").position() == half:
            monkeypatch.undo()
            lake.table("entities").commit(rows, end, lambda step: None, half)
        return list_files(self, *arguments)

    monkeypatch.setattr(ParquetLakeTable, "_files", list_after_another)
    optimize(lake, 0, ["entities"])
    assert lake.table("entities").position() == end
    assert plain(lake.table("entities").read()) == example_log.table("entities")


class _RefusingFilesystem:
    """A filesystem of Hadoop that, as some do, answers that it has not renamed data instead of raising an error."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    def rename(self, path: Any, target: Any) -> bool:
        return not path.getName().endswith(".parquet") and bool(self._filesystem.rename(path, target))


def test_a_file_that_is_not_renamed_is_in_no_manifest(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, (half, end) = new_lake("parquet", tmp_path), example_log.halves()
    append(lake, example_log.source(half), ["entities"])
    append(lake, example_log.source(), [])
    stored, rows = lake.table("entities"), compute_rows(lake, "entities", half, end)
    assert isinstance(stored, ParquetLakeTable)
    monkeypatch.setattr(stored, "_filesystem", _RefusingFilesystem(stored._filesystem))
    file = r"\S+\.parquet"
    says = rf"^the filesystem has not renamed \S+/entities/_{file} to \S+/entities/data/{file}; entities is as it was$"
    for is_optimized in (False, True):
        with pytest.raises(LakeError, match=says) as refused:
            stored.optimize(0) if is_optimized else stored.commit(rows, end, lambda step: None, half)
        assert not isinstance(refused.value, LakeBusy)
    again = lake.table("entities")
    assert (again.position(), plain(again.read())) == (half, example_log.table("entities", half))
    append(lake, example_log.source(), ["entities"])
    assert plain(lake.table("entities").read()) == example_log.table("entities")


def test_a_damaged_manifest_is_named(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path) -> None:
    lake = new_lake("parquet", tmp_path)
    append(lake, example_log.source(), ["log"])
    (manifest,) = (tmp_path / "parquet" / "log" / "manifest").glob("*.json")
    manifest.write_bytes(manifest.read_bytes().replace(b"1", b"2", 1))  # its checksum is in a file next to it
    with pytest.raises(LakeError, match=f"{manifest} is not a manifest that this program reads: Checksum error"):
        lake.head()


@pytest.mark.parametrize(("format", "name"), [("parquet", "lake[1]"), ("parquet", "{a,b}"), ("delta", "x`y")])
def test_names_that_are_patterns(
    spark: SparkSession, example_log: ExampleLog, tmp_path: Path, format: FormatName, name: str
) -> None:
    with pytest.raises(LakeError, match="the character"):
        append(Lake(spark, format, str(tmp_path / name)), example_log.source(), ["log"])
    assert list(tmp_path.iterdir()) == []
