"""One hash proves the state of the tables, and each row that differs from the log is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as f

from annals.spark_projections.lake import append
from annals.spark_projections.lake.append import Lake
from annals.spark_projections.lake.tables import ALL_TABLES, TABLES, LakeColumn
from annals.spark_projections.lake.verify import state_hash, verify
from annals.spark_projections.log_schema import LogHead
from annals.spark_projections.verify_log import ChainAnchors
from tests.spark_projections.lake.conftest import FullLake, NewLake
from tests.spark_projections.lake.lakes import ExampleLog, each_format

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]


def _rewrite(lake: Lake, name: str, change: dict[str, str]) -> None:
    """Adds the first row of a table again, changed, without moving its position. change: SQL by column."""
    stored = lake.table(name)
    rows = stored.read().orderBy(*TABLES[name].sort).limit(1)
    for column, value in change.items():
        rows = rows.withColumn(column, f.expr(value))
    if lake.format == "delta":  # Delta ignores a transaction with the same position
        rows.write.format("delta").mode("append").save(f"{lake.uri}/{name}")
    else:
        stored.commit(rows.cache(), stored.position(), lambda step: None)


@pytest.mark.parametrize("format", each_format("delta"))
def test_the_state_hash_is_that_of_the_log(full_lake: FullLake, example_log: ExampleLog, format: str) -> None:
    entities = full_lake(format).table("entities").read()
    assert state_hash(entities) == example_log.rows[-1].statehash
    changed = entities.withColumn("attributes", f.replace("attributes", f.lit("Sales"), f.lit("Sails")))
    assert state_hash(changed) != example_log.rows[-1].statehash


@pytest.mark.parametrize("format", each_format())
def test_differences_are_found(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, format: str) -> None:
    lake = new_lake(format, tmp_path)
    append(lake, example_log.source())
    result = verify(lake, ChainAnchors(head=LogHead(example_log.rows[-1].position, example_log.rows[-1].chain.hex())))
    assert [table.finding for table in result.tables] == [""] * len(TABLES), result
    assert result.statehash == example_log.rows[-1].statehash.hex()
    assert {table.name: table.rows for table in result.tables}["log"] == len(example_log.rows)
    _rewrite(lake, "entities", {"attributes": "replace(attributes, 'shop', 'shed')"})
    _rewrite(lake, "changes", {"after": "'0'"})
    _rewrite(lake, "documents", {"content": "cast('other' AS binary)"})
    found = {table.name: table.finding for table in verify(lake).tables if table.finding}
    assert set(found) >= {"entities", "changes", "documents"}
    anchored = verify(lake, ChainAnchors(head=LogHead(example_log.rows[-1].position, "0" * 64)))
    assert "not that of --head" in anchored.tables[0].finding


def test_files_that_cannot_be_read_are_findings(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path) -> None:
    # docs/guides/lake: verify has a result for each table, also if files of some are damaged or missing
    lake = new_lake("parquet", tmp_path)
    append(lake, example_log.source())
    for name in ("entities", "changes"):
        (file, *_) = Path(lake.uri, name, "data").rglob("*.parquet")
        file.write_bytes(file.read_bytes()[:100]) if name == "entities" else file.unlink()
    found = {table.name: table.finding for table in verify(lake).tables if table.finding}
    assert found.keys() == {"entities", "changes"}
    assert all(finding.startswith("it cannot be read: ") for finding in found.values())
    (file, *_) = Path(lake.uri, "log", "data").rglob("*.parquet")
    file.unlink()
    log = verify(lake).tables[0]
    assert (log.position, log.rows) == (example_log.rows[-1].position, 0)
    assert log.finding.startswith("it cannot be read: ")


@pytest.mark.parametrize("format", each_format("iceberg"))
def test_columns_are_added(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    # a table of an older program has fewer columns; the missing ones are added, without values in its rows
    lake, table = new_lake(format, tmp_path), TABLES["interactions"]
    older = table._replace(columns=tuple(column for column in table.columns if column.name != "command"))
    monkeypatch.setitem(ALL_TABLES, "interactions", older)
    append(lake, example_log.source(example_log.halves()[0]), ["interactions"])
    monkeypatch.setitem(ALL_TABLES, "interactions", table)
    append(lake, example_log.source(), ["interactions"])
    rows = lake.table("interactions").read().orderBy("last").collect()
    assert [row.command is None for row in rows] == [end <= example_log.halves()[0] for end in example_log.ends()]
    monkeypatch.setitem(ALL_TABLES, "interactions", older)
    with pytest.raises(ValueError, match=r"interactions has a column command .*newer program"):
        lake.table("interactions").commit(lake.spark.createDataFrame([], older.schema), 99, lambda step: None)


def test_columns_have_meanings() -> None:
    for table in ALL_TABLES.values():
        assert all(isinstance(column, LakeColumn) and column.about for column in table.columns)
        assert len(set(table.names)) == len(table.names)
