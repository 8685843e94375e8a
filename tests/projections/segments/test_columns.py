"""Log files of older programs have fewer columns, and can still be read."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest

from annals.projections.log.table_rows import LogTableRow
from annals.projections.segments.columns import LOG_FILE_SCHEMA, log_rows, write_table

VALUES: Any = (
    *(1, "/", 1, "EntityCreated:1", "{}", 1, 1, "id", "2026-01-01T00:00:00.000000Z"),
    *("ada", "CreateRegistry", "http://h", b"chain", b"statehash", "salt", "keys", "k7m2q9w4x8yz"),
)
ROW = LogTableRow(*VALUES)


def written(columns: int) -> Any:
    """A file with the first columns."""
    file = io.BytesIO()
    write_table(file, pa.schema(list(LOG_FILE_SCHEMA)[:columns]), [ROW[:columns]], 10, "state")
    file.seek(0)
    return file


@pytest.mark.parametrize("missing", [0, 2, 3])
def test_columns_of_each_version(missing: int) -> None:
    # ACC-115: rows of version 2 lack the credential, those of version 1 also the salt; missing values are read as empty
    columns = len(ROW) - missing
    stored: Any = ROW[:columns]
    assert [*log_rows(written(columns))] == [LogTableRow(*stored)]
    assert LogTableRow(*stored)[columns:] == ("",) * missing


@pytest.mark.parametrize("missing", [1, 4])
def test_other_columns_are_refused(missing: int) -> None:
    with pytest.raises(ValueError, match="not those of a segment"):
        [*log_rows(written(len(ROW) - missing))]
