"""Other programs read the tables, skip files that they do not need, and read past positions as `?asof` does."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from pyarrow import parquet
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyspark.sql import DataFrame

from annals.spark_projections.lake.append import Lake
from annals.spark_projections.lake.formats import FormatName
from annals.spark_projections.lake.tables import ALL_TABLES, TABLES
from tests.spark_projections.lake.conftest import FullLake
from tests.spark_projections.lake.lakes import ExampleLog, each_format
from tests.support.serving import ROOT

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]

_COLUMNS = ("xid", "type", "epoch", "since", "attributes")
_Rows = list[tuple[Any, ...]]


def _folder(lake: Lake, name: str) -> Path:
    return Path(lake.uri, name)


def _parquet_files(lake: Lake, name: str) -> list[str]:
    """The files that the newest manifest names, as the guide says."""
    folder = _folder(lake, name)
    newest = max((folder / "manifest").glob("*.json"))
    return [str(folder / path) for path in json.loads(newest.read_text())["files"]]


def _iceberg(lake: Lake, name: str, folder: Path) -> Table:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{lake.uri}")
    catalog.create_namespace_if_not_exists("annals")
    metadata = _folder(lake, name) / "metadata"
    newest = max(metadata.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].partition(".")[0]))
    return catalog.register_table(f"annals.{name}", newest.as_uri())


def _rows(found: Any) -> _Rows:
    return sorted(tuple(row) for row in found)


def _wanted(lake: Lake, name: str) -> _Rows:
    return _rows(lake.table(name).read().select(*_COLUMNS).collect())


@pytest.mark.parametrize("name", ["entities", "entity_history"])
def test_delta(full_lake: FullLake, name: str) -> None:
    lake = full_lake("delta")
    table = DeltaTable(str(_folder(lake, name)))
    wanted = _wanted(lake, name)
    arrow = table.to_pyarrow_table(columns=[*_COLUMNS])
    assert _rows(zip(*arrow.to_pydict().values(), strict=True)) == wanted
    assert _rows(duckdb.execute(f"SELECT {', '.join(_COLUMNS)} FROM arrow").fetchall()) == wanted
    assert _rows(pl.read_delta(str(_folder(lake, name)), columns=[*_COLUMNS]).rows()) == wanted
    # Delta records the position as the version of an application's last transaction
    assert table.transaction_version("annals") == lake.table(name).position()


@pytest.mark.long
@pytest.mark.parametrize("name", ["entities", "entity_history"])
def test_iceberg(full_lake: FullLake, tmp_path: Path, name: str) -> None:
    lake = full_lake("iceberg")
    table = _iceberg(lake, name, tmp_path)
    wanted = _wanted(lake, name)
    scan = table.scan(selected_fields=_COLUMNS)
    assert _rows(zip(*scan.to_arrow().select([*_COLUMNS]).to_pydict().values(), strict=True)) == wanted
    connection = scan.to_duckdb("rows")
    assert _rows(connection.sql(f"SELECT {', '.join(_COLUMNS)} FROM rows").fetchall()) == wanted
    assert _rows(pl.scan_iceberg(table).select(*_COLUMNS).collect().rows()) == wanted
    snapshot = table.current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert snapshot.summary["annals.position"] == str(lake.table(name).position())


@pytest.mark.long
@pytest.mark.parametrize("name", ["entities", "entity_history"])
def test_parquet(full_lake: FullLake, name: str) -> None:
    lake = full_lake("parquet")
    files, wanted = _parquet_files(lake, name), _wanted(lake, name)
    read = "read_parquet(?, hive_partitioning = true, union_by_name = true)"
    assert _rows(duckdb.execute(f"SELECT {', '.join(_COLUMNS)} FROM {read}", [files]).fetchall()) == wanted
    frame = pl.scan_parquet(files, hive_partitioning=True, try_parse_hive_dates=False)
    assert _rows(frame.select(*_COLUMNS).collect().rows()) == wanted


def _program(word: str) -> str:
    """The only program of the guide with a word."""
    text = (ROOT / "docs" / "guides" / "lake" / "README.md").read_text()
    (program,) = (program for program in re.findall(r"```py\n(.*?)```", text, re.DOTALL) if word in program)
    return str(program)


@pytest.mark.parametrize("format", each_format("delta"))
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_the_programs_of_the_guide(
    full_lake: FullLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: FormatName
) -> None:
    lake = full_lake(format)
    # at the moment in which a commit of Iceberg exchanges that file
    shutil.copytree(lake.uri, tmp_path / "lake", ignore=shutil.ignore_patterns("*version-hint*"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    program = _program({"delta": "deltalake", "iceberg": "pyiceberg", "parquet": "manifest"}[format])
    exec(program.replace("/data/lake", str(tmp_path / "lake")), names)
    changes = lake.table("changes").read()
    if format == "parquet":
        assert sum(parquet.read_metadata(file).num_rows for file in names["files"]) == changes.count() > 0
        return
    wanted = _rows(changes.where("month = '2026-03'").select("position", "path").collect())
    found = names["changes"] if format == "delta" else names["table"].scan(row_filter="month == '2026-03'").to_arrow()
    assert _rows(zip(*found.select(["position", "path"]).to_pydict().values(), strict=True)) == wanted != []


#: Queries by xid, by time and by both, which need only a part of a table.
_PARTIAL: Final = (
    ("entities", "stream = '/schemagroups/sales'"),
    ("entity_history", "stream LIKE '/schemagroups/web/%' AND since_time < '2026-02-01'"),
    ("changes", "time >= '2026-03-01'"),
    ("log", "month = '2026-01'"),
)


@pytest.mark.parametrize("format", each_format("delta"))
def test_questions_by_xid_and_by_time_skip_files(full_lake: FullLake, format: str) -> None:
    lake = full_lake(format)
    for name, condition in _PARTIAL:
        rows = lake.table(name).read()
        found, everything = _scan(rows.where(condition)), _scan(rows)
        assert 0 < found.rows < everything.rows, (name, found, everything)
        # the names of folders and the statistics of a table format exclude whole files; without a table format, a file
        # is opened where folders do not exclude it, and its own statistics exclude its rows
        assert found.files < everything.files or (format == "parquet" and "month" not in condition), (name, found)


class _Scan(NamedTuple):
    """What a query has read of a table: the number of files that were not excluded, and of rows from them."""

    files: int
    rows: int


def _scan(rows: DataFrame) -> _Scan:
    plan: Any = rows._jdf.queryExecution().executedPlan()
    plan.executeCollect()
    metrics = plan.collectLeaves().head().metrics()
    files = "numFiles" if metrics.contains("numFiles") else "resultDataFiles"
    return _Scan(*(int(metrics.apply(name).value()) for name in (files, "numOutputRows")))


@pytest.mark.long
def test_iceberg_files_are_skipped_elsewhere_too(full_lake: FullLake, tmp_path: Path) -> None:
    table = _iceberg(full_lake("iceberg"), "changes", tmp_path)
    everything = [*table.scan().plan_files()]
    march = [*table.scan(row_filter="month == '2026-03'").plan_files()]
    late = [*table.scan(row_filter="time >= '2026-03-01T00:00:00+00:00'").plan_files()]
    assert 0 < len(march) == len(late) < len(everything)


@pytest.mark.parametrize("format", each_format("delta"))
def test_past_positions(full_lake: FullLake, example_log: ExampleLog, format: str) -> None:
    # the table at a past transaction, its history at that position, and `?asof` agree
    lake, half = full_lake(format), example_log.halves()[0]
    stored = lake.table("entities")
    assert stored.positions()[-1] == example_log.halves()[1] and half in stored.positions()
    past = _rows(stored.read(half).select("stream", "epoch", "attributes").collect())
    history = lake.table("entity_history").read().where(f"since <= {half} AND (until IS NULL OR until > {half})")
    assert past == _rows(history.select("stream", "epoch", "attributes").collect())
    shown = example_log.epochs_asof(half)
    assert len(shown) > 3
    found = {(row[0], row[1]) for row in past if "/versions/" in row[0] or row[0].count("/") == 2}
    assert {(stream, epoch) for stream, epoch in found if stream.startswith("/schemagroups/")} == shown
    with pytest.raises(ValueError, match="cannot be read at position 1"):
        stored.read(1)


@pytest.mark.parametrize("format", each_format("delta"))
def test_files_are_compressed(full_lake: FullLake, format: str) -> None:
    """With Spark's default compression, a lake would be two thirds larger."""
    files = filter(_is_data, Path(full_lake(format).uri).rglob("*.parquet"))
    columns = [parquet.read_metadata(path).row_group(0).column(0) for path in files]
    assert {column.compression for column in columns} == {"ZSTD"}


@pytest.mark.long
def test_rows_of_files_are_sorted(full_lake: FullLake) -> None:
    """Readers skip parts of files by the columns that the table is sorted by.

    What Delta and Iceberg merge into a table is sorted only when they optimize it.
    """
    for table in TABLES.values():
        files = [*(Path(full_lake("parquet").uri) / table.name).rglob("*.parquet")]
        rows = [parquet.ParquetFile(path).read(list(table.sort)).to_pylist() for path in files if _is_data(path)]
        assert any(len(each) > 1 for each in rows), table.name
        for found in ([tuple(row.values()) for row in each] for each in rows):
            assert found == sorted(found), table.name


def _is_data(path: Path) -> bool:
    return path.parent.name != "_delta_log" and path.stat().st_size > 0


@pytest.mark.parametrize("format", each_format("delta"))
def test_each_table_has_a_folder(full_lake: FullLake, format: str) -> None:
    assert {path.name for path in Path(full_lake(format).uri).iterdir()} == set(ALL_TABLES)
