"""Live tables: equal to those of the whole log at every position that they come to, whatever happens on the way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections import live
from annals.spark_projections.live.folder import LiveTableFolder
from annals.spark_projections.live.manifest import Manifest, Run
from annals.spark_projections.live.micro_batch import MicroBatch, apply_batch
from annals.spark_projections.live.runs import split_runs
from annals.spark_projections.verify_log import UnverifiedLog
from tests.spark_projections.live_tables import MOMENTS, check_no_stray_runs, check_tables, kill_at, run_to_end, table
from tests.spark_projections.served_registry import ServedLog, served_log, write_changes

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(600)]


@pytest.fixture
def growing(sqlite_url: str, tmp_path: Path) -> Iterator[ServedLog]:
    """A registry of the test's own."""
    with served_log(sqlite_url, tmp_path) as found:
        yield found


class Stream:
    """Micro-batches that are handed over one by one, as Spark would."""

    def __init__(self, spark: SparkSession, folder: Path, query: str = "q", *, whole: bool = False) -> None:
        self._spark = spark
        self._folder = folder
        self._query = query
        self._whole = whole
        self.number = -1

    def give(self, rows: Iterable[LogTableRow], *, again: bool = False, keep: float = 60.0) -> Manifest:
        """What is in force after a batch. again: it has the number of the one before."""
        self.number += not again
        batch = MicroBatch(table(self._spark, rows), self._query, self.number)
        return apply_batch(LiveTableFolder(self._spark, str(self._folder)), batch, self._whole, keep)


def _flip(rows: list[LogTableRow], index: int) -> None:
    state = rows[index].state
    middle = len(state) // 2
    rows[index] = rows[index]._replace(state=f"{state[:middle]}{chr(ord(state[middle]) ^ 1)}{state[middle + 1 :]}")


#: How a batch is changed at an index, and what is said of it.
CHANGED = "the chain hash differs"
FORGERIES: dict[str, tuple[Callable[[list[LogTableRow], int], None], str]] = {
    "a flipped byte": (_flip, CHANGED),
    "a removed event": (list.__delitem__, "events are missing"),
}


@pytest.mark.long
def test_live_tables_resume_after_kill(spark: SparkSession, growing: ServedLog, tmp_path: Path) -> None:
    # EV-79: each event is taken in once, and what is seen meanwhile is whole interactions
    options = ("--from", "annals", "--registry", growing.url)
    for moment in MOMENTS:
        kill_at(tmp_path, moment, *options)
        check_tables(spark, tmp_path / "tables", growing.rows())
        write_changes(growing, moment.split("/")[1])
    rows = growing.rows()
    assert run_to_end(tmp_path, *options) == f"position {rows[-1].position}"
    assert check_tables(spark, tmp_path / "tables", rows) == rows[-1].position
    check_no_stray_runs(spark, tmp_path / "tables")


@pytest.mark.long
def test_any_order(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # EV-78: late partitions, events that come twice and batches that come again; interactions are never split
    rows, chance, seen = registry.rows(), random.Random(1), set[int]()
    left, stream = list(rows), Stream(spark, tmp_path / "t")
    while left:
        near = left[: chance.randint(30, 120)]
        batch = chance.sample(near, chance.randint(1, len(near)))
        left = [row for row in left if row not in batch]
        again = chance.choices(rows[: len(rows) - len(left)], k=3)
        manifest = stream.give([*batch, *(row for row in again if row not in left)])
        if chance.random() < 0.4:
            assert stream.give(batch, again=True) == manifest
        seen.add(check_tables(spark, tmp_path / "t", rows))
        assert manifest.position in {0, *(row.last for row in rows)}
    assert max(seen) == rows[-1].position and len(seen) > 2


@pytest.mark.long
def test_readers_go_on_while_the_tables_move(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # P-14: a table that was opened stays at its position, also when its files no longer count
    rows, stream = registry.rows(), Stream(spark, tmp_path, whole=True)
    end = rows[40].last
    stream.give(row for row in rows if row.last <= end)
    opened = {name: getattr(live, name)(spark, str(tmp_path)) for name in ("entities", "changes")}
    before = {name: sorted(map(str, table.collect())) for name, table in opened.items()}
    stream.give(row for row in rows if row.last > end)
    for name, table_ in opened.items():
        spark.catalog.clearCache()
        assert sorted(map(str, table_.collect())) == before[name]
    manifest = stream.give([], keep=0.0)
    assert manifest.retired == {}
    check_no_stray_runs(spark, tmp_path)
    assert live.register(spark, str(tmp_path)) == rows[-1].position
    assert spark.table("entities").count() != len(before["entities"])


@pytest.mark.long
def test_a_new_checkpoint_adds_nothing(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # EV-79: what the tables have is known by position, so a stream that begins anew goes on behind it
    rows = registry.rows()
    end = rows[60].last
    Stream(spark, tmp_path, "first").give(row for row in rows if row.last <= end)
    Stream(spark, tmp_path, "second").give(rows)
    assert check_tables(spark, tmp_path, rows) == rows[-1].position


@pytest.mark.long
def test_what_does_not_belong_together_is_refused(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # a checkpoint without its tables, another stream's tables, and another log would lose or mix events
    rows, stream = registry.rows(), Stream(spark, tmp_path)
    stream.give(rows)
    stream.number += 1
    with pytest.raises(live.LiveTablesError, match="ends with batch 0 but the checkpoint goes on with 2"):
        stream.give([])
    late = Stream(spark, tmp_path, "other")
    late.number = 4
    with pytest.raises(live.LiveTablesError, match="not written by the stream of this checkpoint, which is at batch 5"):
        late.give([])
    edited = [row._replace(chain=bytes(32)) for row in rows]
    with pytest.raises(live.LiveTablesError, match=f"not the one that the tables have up to position {rows[-1].last}"):
        Stream(spark, tmp_path, "edited").give(edited)
    newer = tmp_path / "manifest" / f"{9:020}.json"
    newer.write_text('{"format": 2}')
    with pytest.raises(live.LiveTablesError, match="is not a manifest that this program reads"):
        live.position(spark, str(tmp_path))


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        pytest.param(*FORGERIES["a flipped byte"], id="a flipped byte"),
        pytest.param(*FORGERIES["a removed event"], id="a removed event", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_tampered_batches_are_refused(
    spark: SparkSession, registry: ServedLog, tmp_path: Path, forge: Callable[[list[LogTableRow], int], None], says: str
) -> None:
    # P-14: the chain of hashes goes on from the tables; nothing of the batch is taken, and the true one still is
    rows, stream = registry.rows(), Stream(spark, tmp_path, whole=True)
    end = rows[40].last
    stream.give(rows[:end])
    edited = rows[end:]
    forge(edited, 20)
    with pytest.raises(UnverifiedLog, match=f"position {edited[20].first if says == CHANGED else end + 21}: {says}"):
        stream.give(edited)
    assert check_tables(spark, tmp_path, rows) == end
    stream.give(rows[end:], again=True)
    assert check_tables(spark, tmp_path, rows) == rows[-1].position


def test_runs_stay_few() -> None:
    # about as many as the number of rows has binary digits, each row rewritten about as often
    runs, written = tuple[Run, ...](), 0
    for _ in range(1000):
        stay, taken = split_runs(runs, 1)
        rows = 1 + sum(run.rows for run in taken)
        runs, written = (*stay, Run("", rows)), written + rows
    assert [run.rows for run in runs] == [512, 256, 128, 64, 32, 8]
    assert written < 1000 * 10
    assert split_runs((Run("", 9), Run("", 5)), 20, max_rows=8) == ((Run("", 9),), (Run("", 5),))
