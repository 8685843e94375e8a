"""A folder of segments has the whole log: every event and document once, in whole interactions."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from annals.projections.log.table_rows import SCHEMA_VERSION
from annals.projections.segments.folder import SegmentFolder
from annals.projections.segments.log_agreement import SegmentsMismatch
from annals.projections.segments.manifest import ManifestEntry, SegmentRange
from annals.projections.segments.read import documents, rows
from annals.projections.segments.verify import compare_with_store, verify_segments
from annals.projections.segments.write import DamagedLog, SegmentSize, WriteSummary, append_segments
from tests.support.registries.recorded import Registry
from tests.support.segment_logs import files_below, log_rows, record_interactions, stored_documents

SIZES = [SegmentSize(1, 1), SegmentSize(7, 3), SegmentSize(7, 3, full_only=True), SegmentSize(10_000, 10_000)]


def entries(folder: SegmentFolder) -> list[ManifestEntry]:
    return list(folder.entries(folder.ranges()))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_what_is_read_back_is_the_log(registry: Registry, folder: SegmentFolder, size: SegmentSize) -> None:
    # All bytes are equal, including states and hashes, so the log can be verified from the files.
    record_interactions(registry, 40)
    append_segments(registry.url, folder, size)
    end = entries(folder)[-1].last
    expected = log_rows(registry.store.engine)
    assert list(rows(folder)) == expected[:end]
    assert end == len(expected) or size.full_only
    if not size.full_only:
        found = list(documents(folder))
        assert len(found) == len(dict(found))  # each document once
        assert dict(found) == stored_documents(registry.store.engine)
    assert [*verify_segments(folder), *compare_with_store(folder, registry.url)] == []


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_segments_are_whole_interactions_that_follow_each_other(
    registry: Registry, folder: SegmentFolder, tmp_path: Path, size: SegmentSize
) -> None:
    record_interactions(registry, 40)
    done = append_segments(registry.url, folder, size)
    found, log = entries(folder), log_rows(registry.store.engine)
    assert [one.first for one in found] == [1, *(one.last + 1 for one in found[:-1])]
    assert done == WriteSummary(len(found), found[-1].last, found[-1].last)
    ends = {row.last: row for row in log}
    for before, one in pairwise([None, *found]):
        assert one is not None
        end = ends[one.last]
        assert (one.chain, one.statehash) == (end.chain.hex(), end.statehash.hex())
        assert one.previous == (before.chain if before else "00" * 32)
        assert one.events == one.last - one.first + 1
        assert one.interactions == len({row.last for row in log[one.first - 1 : one.last]})
        # A segment ends after the first interaction that fills it; only the last segment may not be full.
        began = max(row.first for row in log[one.first - 1 : one.last])
        assert began - one.first < size.events
        assert one.events >= size.events or (one is found[-1] and not size.full_only)
        for file in one.files:
            content = (tmp_path / "segments" / file.path).read_bytes()
            assert (file.bytes, file.sha256) == (len(content), sha256(content).hexdigest())
    names = sorted(path.name for path in (tmp_path / "segments" / "log").iterdir())
    assert names == [Path(one.log.path).name for one in found]  # names sort by position


def test_the_end_of_the_log_may_wait_until_it_fills_a_segment(registry: Registry, folder: SegmentFolder) -> None:
    size = SegmentSize(5, full_only=True)
    registry.record(*((f"/dirs/a{n}", {}) for n in range(4)))
    assert append_segments(registry.url, folder, size) == WriteSummary(0, 0, 0)
    registry.record(("/dirs/b", {}))
    assert append_segments(registry.url, folder, size) == WriteSummary(1, 5, 5)


def test_a_log_that_grows_adds_files_and_changes_none(
    registry: Registry, folder: SegmentFolder, tmp_path: Path
) -> None:
    # Documents that an earlier run has written are not written again.
    record_interactions(registry, 15)
    append_segments(registry.url, folder, SegmentSize(7))
    before = files_below(tmp_path / "segments")
    assert append_segments(registry.url, folder, SegmentSize(7)).segments == 0
    assert files_below(tmp_path / "segments") == before
    record_interactions(registry, 15, start=15)
    append_segments(registry.url, folder, SegmentSize(11))
    after = files_below(tmp_path / "segments")
    assert before.items() < after.items()
    assert list(rows(folder)) == log_rows(registry.store.engine)
    packed = [document.sha256 for document in documents(folder)]
    assert sorted(packed) == sorted(stored_documents(registry.store.engine))


def test_an_interaction_larger_than_a_segment_goes_through_in_small_groups(
    registry: Registry, folder: SegmentFolder, tmp_path: Path
) -> None:
    # An import of any size is one interaction; only a row group of it is in memory.
    registry.record(("/dirs/before", {}))
    registry.record(*((f"/dirs/d{n}", {"n": n}) for n in range(3000)))
    registry.record(("/dirs/after", {}))
    append_segments(registry.url, folder, SegmentSize(100, 128))
    assert folder.ranges() == [SegmentRange(1, 3001), SegmentRange(3002, 3002)]
    first = pq.ParquetFile(tmp_path / "segments" / entries(folder)[0].log.path).metadata
    groups = [first.row_group(n) for n in range(first.num_row_groups)]
    assert [group.num_rows for group in groups] == [*[128] * 23, 3001 - 23 * 128]
    assert {group.column(n).compression for group in groups for n in range(first.num_columns)} == {"ZSTD"}
    assert list(rows(folder)) == log_rows(registry.store.engine)
    assert list(verify_segments(folder)) == []


def test_an_empty_log_makes_no_folder(registry: Registry, folder: SegmentFolder, tmp_path: Path) -> None:
    assert append_segments(registry.url, folder) == WriteSummary(0, 0, 0)
    assert not (tmp_path / "segments").exists()
    assert [*verify_segments(folder), *compare_with_store(folder, registry.url)] == []


def copy_interactions(url: str, registry: Registry, interactions: int) -> None:
    """Copies the first interactions of a log to another, empty store, unchanged."""
    log = log_rows(registry.store.engine)
    last = sorted({row.last for row in log})[interactions - 1]
    with Registry(url) as second, registry.store.engine.connect() as source, second.store.engine.begin() as target:
        for table, column in (("log", "position"), ("interaction", "last")):
            for row in source.execute(text(f"SELECT * FROM {table} WHERE {column} <= {last}")):
                values = dict(row._mapping)
                marks = ", ".join(f":{name}" for name in values)
                target.execute(text(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"), values)


#: How many of eight interactions two logs share, whether the second continues, where they differ, and the message.
FOREIGN = {
    "other from the beginning": (0, True, 1, "differ between the positions 1 and 3"),
    "other from the fifth on": (4, True, 4, "differ between the positions 4 and 6"),
    "shorter": (4, False, 5, "goes on to position 8, but the log of this store ends at 4"),
}


@pytest.mark.parametrize(("common", "goes_on", "position", "said"), FOREIGN.values(), ids=FOREIGN)
def test_a_folder_with_another_log_is_refused_and_left_as_it_is(
    registry: Registry, folder: SegmentFolder, tmp_path: Path, common: int, goes_on: bool, position: int, said: str
) -> None:
    # Each registry has its own hash chain, so segments of another log, or from after a fork, are never appended.
    for n in range(8):
        registry.record((f"/dirs/d{n}", {}))
    append_segments(registry.url, folder, SegmentSize(3))
    url = f"sqlite:///{tmp_path / 'other.db'}"
    if common:
        copy_interactions(url, registry, common)
    if goes_on:
        with Registry(url) as second:
            second.history.recorded = registry.history.recorded[:common]
            for n in range(9):
                second.record((f"/dirs/other{n}", {}))
    before = files_below(tmp_path / "segments")
    with pytest.raises(SegmentsMismatch, match=said):
        append_segments(url, folder, SegmentSize(3))
    assert files_below(tmp_path / "segments") == before
    assert [finding.position for finding in compare_with_store(folder, url)] == [position]


#: Changes of the log without the registry, and the position in the error.
DAMAGES = {
    "a state": ("UPDATE log SET topic = 'EntityUpdated:1' WHERE position = 12", 12),
    "a missing event": ("DELETE FROM log WHERE position = 12", 12),
    "who it was": ("UPDATE interaction SET caller = 'nobody' WHERE first = 12", 12),
    "a missing document": ("DELETE FROM document", 11),
}


@pytest.mark.parametrize(("damage", "position"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_log_is_not_passed_on(registry: Registry, folder: SegmentFolder, damage: str, position: int) -> None:
    for n in range(10):
        registry.record((f"/dirs/d{n}", {}))
    content = b"document"
    digest = sha256(content).hexdigest()
    registry.record(("/dirs/with", {"doc": digest}), documents={digest: content})
    registry.record(("/dirs/last", {}))
    with registry.store.engine.begin() as connection:
        connection.execute(text(damage))
    with pytest.raises(DamagedLog, match=f"position {position}: "):
        append_segments(registry.url, folder, SegmentSize(10))
    assert folder.ranges() == [SegmentRange(1, 10)]


def test_entries_say_the_form_of_the_rows(registry: Registry, folder: SegmentFolder) -> None:
    record_interactions(registry, 3)
    append_segments(registry.url, folder)
    assert [entry.schemaversion for entry in entries(folder)] == [SCHEMA_VERSION]
