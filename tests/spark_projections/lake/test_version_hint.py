"""An Iceberg table without `version-hint.text`, which each commit of Iceberg removes before it writes the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from annals.spark_projections.lake import Lake, append
from annals.spark_projections.lake.formats.contract import NoTables
from annals.spark_projections.lake.optimize import optimize
from annals.spark_projections.lake.verify import verify
from tests.spark_projections.lake.conftest import NewLake
from tests.spark_projections.lake.lakes import ExampleLog, plain

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]

_NAMES: Final = ("log", "entities")


def test_a_table_without_its_hint_is_whole(new_lake: NewLake, example_log: ExampleLog, tmp_path: Path) -> None:
    # docs/guides/lake: a writer may be killed at any time, so also between the two steps
    lake, (half, end) = new_lake("iceberg", tmp_path), example_log.halves()
    append(lake, example_log.source(half), _NAMES)
    _remove_hints(lake)
    _check(lake, example_log, half)
    append(lake, example_log.source(), _NAMES)
    assert [_hint(lake, name).exists() for name in _NAMES] == [True, True]
    _remove_hints(lake)
    optimize(lake, 0, _NAMES)
    assert [_hint(lake, name).exists() for name in _NAMES] == [True, True]
    assert [lake.table(name).positions() for name in _NAMES] == [[end], [end]]
    _check(lake, example_log, end)


@pytest.mark.parametrize("left", ["", "2c6f1e9a-7d6b-4c55-9f0e-1f7a0a5f4b1d.metadata.json"])
def test_a_folder_without_a_version_is_no_table(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, left: str
) -> None:
    # what a writer leaves that is killed while it makes the table: metadata get their name when they are complete
    lake = new_lake("iceberg", tmp_path)
    (folder := tmp_path / "iceberg" / "log" / "metadata").mkdir(parents=True)
    if left:
        (folder / left).touch()
    with pytest.raises(NoTables):
        lake.existing_tables()
    append(lake, example_log.source(), ["log"])
    assert plain(lake.log(0, lake.head().position)) == plain(example_log.log())


def _check(lake: Lake, example_log: ExampleLog, end: int) -> None:
    """Compares the tables with the log up to a position: as they say, and as `verify` finds them."""
    assert lake.head().position == end
    found = lake.table("entities")
    assert (found.position(), found.positions()[-1]) == (end, end)
    assert plain(found.read()) == plain(found.read(end)) == example_log.table("entities", end)
    result = verify(lake)
    wanted = [("log", end, end), ("entities", end, len(example_log.table("entities", end)))]
    assert [table[:3] for table in result.tables if not table.finding] == wanted, result
    assert result.statehash == next(row.statehash.hex() for row in example_log.rows if row.position == end)


def _remove_hints(lake: Lake) -> None:
    for name in _NAMES:
        _hint(lake, name).unlink()
        _hint(lake, name).with_name(".version-hint.text.crc").unlink()


def _hint(lake: Lake, name: str) -> Path:
    return Path(lake.uri, name, "metadata", "version-hint.text")
