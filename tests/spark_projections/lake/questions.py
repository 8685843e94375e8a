"""The questions of docs/guides/lake: SQL files, whose answers and plans a page shows.

`python -m tests.spark_projections.lake.questions` writes the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from annals.spark_projections.lake.append import Lake
from annals.spark_projections.lake.formats.contract import session_settings
from annals.spark_projections.lake.tables import ALL_TABLES
from tests.support.serving import ROOT

FOLDER: Final = ROOT / "docs" / "guides" / "lake"
PAGE: Final = FOLDER / "questions.md"
_HEADER: Final = """# Twenty questions

Each question is a file of its own, in the SQL of Spark. The answers are those of a small shop: three
Groups of schemas (`sales`, `shipping` and `web`), three callers and three months. The lines after an answer are the
parts of the plan that read tables: `PartitionFilters` exclude files by their folder, `PushedFilters` by the statistics
in them.
"""
#: The part of a scan that a page shows: table, filters and columns, without what differs between runs.
_SCAN: Final = re.compile(r"FileScan parquet .*?\[[^\]]*\].*?PartitionFilters: (\[.*?\]), PushedFilters: (\[.*?\]), ")
_NUMBER: Final = re.compile(r"#\d+L?")


class Question(NamedTuple):
    """A question. text: its first line. sql: the query."""

    name: str
    text: str
    sql: str


def questions() -> Iterator[Question]:
    """The questions in their order."""
    for path in sorted((FOLDER / "questions").glob("*.sql")):
        first, _, sql = path.read_text().partition("\n")
        yield Question(path.stem, first.removeprefix("-- "), sql.strip())


def register(lake: Lake) -> None:
    """Registers the tables of a lake as views."""
    lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name in ALL_TABLES:
        lake.table(name).read().createOrReplaceTempView(name)


def section(spark: SparkSession, question: Question) -> str:
    """The part of the page about one question."""
    with session_settings(spark, {"spark.sql.maxMetadataStringLength": "2000"}):
        return _section(spark.sql(question.sql), question)


def _section(found: DataFrame, question: Question) -> str:
    answer = found._jdf.showString(100, 0, False).rstrip()
    return (
        f"## {question.text}\n\nFile: [{question.name}.sql](questions/{question.name}.sql)\n\n"
        f"```sql\n{question.sql}\n```\n\n```text\n{answer}\n```\n\n```text\n{_plan(found._jdf)}\n```\n"
    )


def page(lake: Lake) -> str:
    """The whole page."""
    register(lake)
    return "\n".join([_HEADER, *(section(lake.spark, question) for question in questions())])


def _plan(frame: Any) -> str:
    text = str(frame.queryExecution().sparkPlan().toString())
    scans = [f"PartitionFilters: {first}, PushedFilters: {second}" for first, second in _SCAN.findall(text)]
    return "\n".join(dict.fromkeys(_NUMBER.sub("", scan) for scan in scans)) or "no table is read"


def main() -> None:
    """Writes the page."""
    from annals.spark_projections.jars import CONNECTORS
    from annals.spark_projections.session import SparkSettings, session
    from tests.spark_projections.lake.conftest import filled_lake
    from tests.spark_projections.lake.example import write_example
    from tests.spark_projections.lake.lakes import ExampleLog

    assert "delta" in CONNECTORS
    spark = session(SparkSettings(master="local[2]"), ["delta"])
    with TemporaryDirectory() as folder:
        write_example(Path(folder, "annals.db"))
        example_log = ExampleLog.of(spark, Path(folder, "annals.db"))
        PAGE.write_text(page(filled_lake(Lake(spark, "delta", f"{folder}/lake"), example_log)))


if __name__ == "__main__":
    main()
