"""The rows of whole streams, which are returned in parts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from annals.projections.database import drivers
from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.rows import ROW_COLUMNS, stored_row
from annals.projections.entities.tables import tables
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import LogTableRow, table_rows
from annals.spark_projections.arrow_batches import record_batch
from annals.spark_projections.read_model import stream_rows
from annals.spark_projections.read_model.stream_rows import row_batches
from tests.support.read_model import read_model_rows
from tests.support.registries.recorded import Registry

_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("topic", "state")),
        *((name, pa.int64()) for name in ("revision", "position")),
    ]
)


def _events_by_stream(registry: Registry) -> list[LogTableRow]:
    with registry.store.engine.connect() as connection:
        log = Log(drivers.database_of(connection))
        rows = [
            row for each in log.interactions(0, 1000) for row in table_rows(each, log.events(each.first, each.last))
        ]
    return sorted(rows, key=lambda row: (row.stream, row.revision))


def test_a_stream_may_be_longer_than_a_part(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # P-14: the rows of all parts are those of the projection that each request updates
    monkeypatch.setattr(stream_rows, "_BATCH_STATES", 4)
    with Registry(sqlite_url) as registry:
        for n in range(9):
            entity = {"dirid": f"d{n}", "link": "/dirs/d1", "labels": {"a.b": "x"}}
            registry.record(("/", {"registryid": "r", "dirscount": n}), (f"/dirs/d{n}", entity))
        registry.record(("/dirs/d3", None), ("/dirs/d4", {"dirid": "d4"}), ("/subscriptions/s", {"id": "s"}))
        events = [[getattr(row, name) for name in _SCHEMA.names] for row in _events_by_stream(registry)]
        with registry.store.engine.connect() as connection:
            expected = read_model_rows(connection)
    batches = (record_batch(events[at : at + 5], _SCHEMA) for at in range(0, len(events), 5))
    parts = list(row_batches(batches, MAX_LEAVES))
    found: dict[str, list[Any]] = {
        "attribute": [(*path, *leaf) for part in parts for path, leaves in part.leaves.items() for leaf in leaves]
    }
    for name in stream_rows.TABLES:
        found[getattr(tables(), name).name] = [row for part in parts for row in part.rows[name]]
    for name in ("entity", "entity_history"):
        found[name] = [(*stored_row(row[: len(ROW_COLUMNS)]), *row[len(ROW_COLUMNS) :]) for row in found[name]]
    assert {name: sorted(rows, key=str) for name, rows in found.items()} == expected
    assert [len(part.rows["entity"]) + len(part.rows["history"]) for part in parts] == [4, 4, 4, 4, 3]
