"""Tables of a lake equal those that are computed at once, however the log arrives, and wherever a writer stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from annals.spark_projections.lake import append
from annals.spark_projections.lake.append import compute_rows
from annals.spark_projections.lake.tables import TABLES
from annals.spark_projections.verify_log import UnverifiedLog
from tests.spark_projections.lake.conftest import FullLake, NewLake
from tests.spark_projections.lake.lakes import FORMATS, Story, check_lake, plain

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]


class _Stopped(Exception):
    """The writer ended here."""


class _StopsOnce:
    """Ends the work at the first step at which it has not ended before, so that each step ends it once."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, step: str) -> None:
        if step not in self.seen:
            self.seen.append(step)
            raise _Stopped(step)


@pytest.mark.parametrize("format", FORMATS)
def test_the_tables_follow_the_log(full_lake: FullLake, story: Story, format: str) -> None:
    check_lake(full_lake(format), story)


@pytest.mark.parametrize("format", [FORMATS[0], *(pytest.param(each, marks=pytest.mark.long) for each in FORMATS[1:])])
def test_each_point_at_which_a_writer_ends(new_lake: NewLake, story: Story, tmp_path: Path, format: str) -> None:
    lake = new_lake(format, tmp_path)
    for end in story.halves():
        stops = _StopsOnce()
        while True:
            try:
                append(lake, story.source(end), report_step=stops)
                break
            except _Stopped:
                continue
        assert {step for step in stops.seen if step.endswith("committed")} == {f"{name}: committed" for name in TABLES}
    check_lake(lake, story)


@pytest.mark.parametrize("format", FORMATS)
def test_a_write_that_fails_changes_nothing(full_lake: FullLake, story: Story, format: str) -> None:
    # files may have been written by then; no reader sees them
    lake = full_lake(format)
    for name in ("changes", "entities"):
        stored = lake.table(name)
        before, position = plain(stored.read()), stored.position()
        rows = compute_rows(lake, name, 0, position)
        broken = rows.withColumn("xid", f.raise_error(f.lit("a disk is full")).cast("string"))
        with pytest.raises((PySparkException, Exception), match="a disk is full"):
            stored.commit(broken, position + 5, lambda step: None)
        assert lake.table(name).position() == position
        assert plain(lake.table(name).read()) == before


def test_another_log_is_refused(full_lake: FullLake, story: Story) -> None:
    # P-14: what does not continue the chain of the tables adds nothing
    lake, end = full_lake("parquet"), story.ends()[-1]
    forged = [row._replace(position=row.position + 1, first=row.first + 1, last=row.last + 1) for row in story.rows]
    other = Story(story.spark, forged, [])
    with pytest.raises(UnverifiedLog, match=f"position {end + 1}: "):
        append(lake, other.source())
    assert lake.head().position == end
