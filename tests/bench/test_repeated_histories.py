"""A repeated history is a valid log of the requested length."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.values import xid as xids
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.log.table_rows import LogTableRow
from annals.projections.segments import read
from annals.projections.segments.folder import open_folder
from annals.projections.segments.verify import verify_segments
from annals.projections.segments.write import SegmentSize
from bench.histories import URL, write_segments
from bench.repeated_histories import repeat
from bench.stocking import stock

EVENTS = 1500


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("histories") / "source"
    write_segments(folder, EVENTS)
    return folder


@pytest.fixture(scope="module")
def repeated(source: Path) -> Path:
    repeat(source, source.parent / "repeated", 3 * EVENTS, SegmentSize(700, 200))
    return source.parent / "repeated"


def test_a_store_with_a_repeated_history_is_whole(store_url: str, repeated: Path) -> None:
    assert [*verify_segments(open_folder(str(repeated)))] == []
    with closing(Store(store_url, public_url=URL)) as store:
        stock(store, open_folder(str(repeated)))
        rebuild(store)  # fails unless the hashes of the entities add up to the state hash of the log
        assert [*verify_log(store), *verify_row_hashes(store), *verify_history(store)] == []


def test_a_repetition_has_groups_and_documents_of_its_own(source: Path, repeated: Path) -> None:
    once, rows = _rows(source), _rows(repeated)
    assert 3 * EVENTS <= len(rows) < 4 * EVENTS
    groups = {row.stream for row in rows if row.stream.count("/") == 2}
    assert {name for name in groups if "." not in name} == {row.stream for row in once if row.stream.count("/") == 2}
    assert {name for name in groups if name.endswith(".1")} == {f"{name}.1" for name in groups if "." not in name}
    count, in_source = (len(list(read.documents(open_folder(str(folder))))) for folder in (repeated, source))
    assert 2.5 * in_source < count <= 3 * in_source


def test_the_registry_goes_on_from_one_repetition_to_the_next(repeated: Path) -> None:
    rows = _rows(repeated)
    registry = [row for row in rows if row.stream == xids.REGISTRY]
    assert [row.revision for row in registry] == list(range(1, len(registry) + 1))
    attributes = [json.loads(row.state)["attributes"] for row in registry]
    assert len({each["createdat"] for each in attributes}) == 1
    assert [each["epoch"] for each in attributes] == sorted(each["epoch"] for each in attributes)
    live = {row.stream: row.topic.startswith("EntityDeleted") for row in rows if row.stream.count("/") == 2}
    for plural in ("schemagroups", "messagegroups", "endpoints"):
        members = [stream for stream, is_gone in live.items() if stream.startswith(f"/{plural}/") and not is_gone]
        assert attributes[-1][f"{plural}count"] == len(members)


def test_times_follow_each_other_over_five_years(repeated: Path) -> None:
    times = [row.time for row in _rows(repeated)]
    assert times == sorted(times)
    assert times[0].startswith("2021-") and times[-1] > "2024-"


def _rows(folder: Path) -> list[LogTableRow]:
    return list(read.rows(open_folder(str(folder))))
