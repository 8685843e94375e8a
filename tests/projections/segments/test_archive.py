"""Archives: what stays in the database, how changed or lost files are found, and runs that stop at any step."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from annals.commands.store.archive import archive_files, move_states, state_reader
from annals.commands.store.archive.archive_files import ArchiveFiles
from annals.commands.store.archive.archived_segment import ArchivedSegment
from annals.commands.store.archive.move_states import ArchiveChanged
from annals.commands.store.database import sql
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.errors.http_errors import ArchiveUnavailable
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.segments import archive as archives
from annals.projections.segments.archive import (
    OtherArchive,
    UnverifiedSegments,
    absolute_place,
    archive_status,
    move_archive,
    unarchive_log,
)
from annals.projections.segments.folder import SegmentFolder, open_folder
from annals.projections.segments.log_agreement import SegmentsMismatch
from annals.projections.segments.write import SegmentSize, append_segments
from tests.support.archives import (
    SMALL,
    archivable_positions,
    archive_until,
    archived_positions,
    flip_byte,
    forget_cached_files,
    no_progress,
)
from tests.support.registries.recorded import Registry
from tests.support.segment_logs import record_interactions

Events = list[tuple[int, Any]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def aged(registry: Registry) -> Registry:
    """A registry whose entities have changed twice, with documents, and links and subscriptions among them."""
    for _ in range(3):
        registry.record(("/-/links/l", {"url": "http://other"}), ("/subscriptions/s", {"protocol": "HTTP"}))
        record_interactions(registry, 12)
    return registry


def events(registry: Registry) -> Events:
    return registry.store.events(0, 10_000)


def findings(registry: Registry) -> list[str]:
    """The findings of a verification, without those about correlation ids, which a `History` chooses itself."""
    found = [*verify_log(registry.store), *verify_row_hashes(registry.store)]
    return [f"{each.position}: {each.text}" for each in found if "belongs to another stream" not in each.text]


def end_of(registry: Registry) -> int:
    return registry.store.log_end().position


def test_current_states_and_what_is_outside_the_tree_stay(aged: Registry, place: Path) -> None:
    before, end = events(aged), end_of(aged)
    expected = archivable_positions(aged.store, end)
    summary = archive_until(aged.store, aged.url, str(place), end)
    assert archived_positions(aged.store) == expected
    assert (summary.states, summary.last) == (len(expected), end)
    assert len(expected) > end // 2
    assert events(aged) == before
    assert findings(aged) == []


def test_what_became_old_since_follows_with_the_next_run(aged: Registry, place: Path) -> None:
    border = end_of(aged)
    archive_until(aged.store, aged.url, str(place), border)
    record_interactions(aged, 12)
    before = events(aged)
    assert archived_positions(aged.store) != (expected := archivable_positions(aged.store, border))
    assert archive_until(aged.store, aged.url, str(place), border).segments == 0
    assert archived_positions(aged.store) == expected
    assert archive_until(aged.store, aged.url, str(place), end_of(aged)).segments > 0
    assert events(aged) == before
    assert findings(aged) == []


def _remove_file(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("damage", [_remove_file, flip_byte], ids=["removed", "flipped"])
def test_states_stay_whose_file_is_damaged(
    aged: Registry, place: Path, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies in the database are the last ones, although their events have become old since; others leave."""
    border = end_of(aged)
    archive_until(aged.store, aged.url, str(place), border)
    record_interactions(aged, 12)
    archived = archived_positions(aged.store)
    left = set(archivable_positions(aged.store, border)) - set(archived)
    segments = [each for each in archive_status(aged.store).segments if left & set(range(each.first, each.last + 1))]
    assert segments
    damage(place / segments[0].path)
    forget_cached_files(monkeypatch)
    with pytest.raises(ArchiveUnavailable):
        archive_until(aged.store, aged.url, str(place), end_of(aged))
    expected = {
        position
        for position in archivable_positions(aged.store, end_of(aged))
        if not segments[0].first <= position <= segments[0].last
    }
    assert set(archived_positions(aged.store)) - set(archived) == expected - set(archived)


def test_progress_ends_where_the_archive_does(aged: Registry, place: Path) -> None:
    """A run over the old half of a log reports that half as the whole."""
    reports: dict[str, list[tuple[int, int]]] = {}

    def start_step(word: str) -> Callable[[int, int], None]:
        return lambda reached, last: reports.setdefault(word, []).append((reached, last))

    archive_until(aged.store, aged.url, str(place), end_of(aged) // 2, start_step=start_step)
    until = archive_status(aged.store).last
    assert until < end_of(aged)
    assert reports["wrote"][-1] == reports["verified"][-1] == (until, until)


def test_segments_that_exist_already_are_the_archive(aged: Registry, place: Path, folder: SegmentFolder) -> None:
    append_segments(aged.url, folder, SegmentSize(40, 9))
    before = events(aged)
    assert archive_until(aged.store, aged.url, folder.name, end_of(aged) // 2).states > 0
    assert archive_status(aged.store).last >= end_of(aged) // 2
    assert events(aged) == before


def test_the_free_space_of_a_file_is_used_again(sqlite_url: str, place: Path) -> None:
    with Registry(sqlite_url) as registry:
        for _ in range(4):
            registry.record(*((f"/dirs/d{n}", {"text": f"{n * 7919:x}" * 40}) for n in range(500)))
        before = _pages(sqlite_url)
        archive_until(registry.store, sqlite_url, str(place), end_of(registry), SegmentSize(1000, 100))
        free = _pages(sqlite_url)[1]
        assert free - before[1] > before[0] // 20
        registry.record(*((f"/dirs/d{n}", {"text": f"{n * 7919:x}" * 40}) for n in range(500)))
        assert _pages(sqlite_url)[1] < free


def _pages(url: str) -> tuple[int, int]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))


#: Damage to the file of the second segment.
CHANGES: Final[dict[str, Callable[[Path], object]]] = {
    "a changed byte in a row group": lambda path: flip_byte(path, 40),
    "a changed byte in the middle": flip_byte,
    "a changed byte in the footer": lambda path: flip_byte(path, -12),
    "a truncated file": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "an empty file": lambda path: path.write_bytes(b""),
    "a missing file": Path.unlink,
    "another segment": lambda path: path.write_bytes(sorted(path.parent.iterdir())[0].read_bytes()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_files_are_found_when_they_are_read(
    sqlite_url: str, place: Path, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry(sqlite_url) as aged:
        for _ in range(3):
            record_interactions(aged, 12)
        archive_until(aged.store, aged.url, str(place), end_of(aged))
        before, current = events(aged), aged.tables()
        damaged = archive_status(aged.store).segments[1]
        change(place / damaged.path)
        forget_cached_files(monkeypatch)
        for position, event in before:
            in_damaged = damaged.first <= position <= damaged.last and position in archived_positions(aged.store)
            if not in_damaged:
                assert aged.store.events(position - 1, 1) == [(position, event)]
                continue
            with pytest.raises(ArchiveUnavailable) as raised:
                aged.store.events(position - 1, 1)
            message = raised.value.text()
            assert f"positions {damaged.first} to {damaged.last}" in message and str(place) in message
        assert aged.tables() == current
        forget_cached_files(monkeypatch)
        [found] = findings(aged)
        assert found.startswith(f"{damaged.first}: the events up to position {damaged.last} are in the archive {place}")
        assert [*verify_history(aged.store)] == []
        with pytest.raises(ArchiveUnavailable):
            unarchive_log(aged.store, no_progress)
        assert archive_status(aged.store).last == damaged.last or len(archive_status(aged.store).segments) > 2


def test_an_emptied_state_that_no_archive_has_is_damage(aged: Registry, place: Path) -> None:
    archive_until(aged.store, aged.url, str(place), end_of(aged) // 2)
    last = archive_status(aged.store).last
    with aged.store.writing() as transaction:
        transaction.connection.exec_driver_sql(f"UPDATE log SET state = {_empty(aged)} WHERE position = {last + 2}")
    assert any(found.startswith(f"{last + 2}: the event cannot be read") for found in findings(aged))


def test_a_current_state_that_only_the_archive_has_is_found(aged: Registry, place: Path) -> None:
    archive_until(aged.store, aged.url, str(place), end_of(aged))
    with aged.store.writing() as transaction:
        transaction.connection.exec_driver_sql(f"UPDATE log SET state = {_empty(aged)} WHERE stream = '/dirs/d5'")
    assert [found.partition(": ")[2] for found in findings(aged)] == [
        "the archive has the last event of /dirs/d5, which belongs here"
    ]


def _empty(registry: Registry) -> str:
    return "x''" if registry.store.engine.dialect.name == "sqlite" else "''"


def test_a_changed_row_is_found_by_the_chain(aged: Registry, place: Path) -> None:
    archive_until(aged.store, aged.url, str(place), end_of(aged))
    position = archived_positions(aged.store)[10]
    with aged.store.writing() as transaction:
        transaction.connection.exec_driver_sql(
            f"UPDATE log SET topic = 'EntityRefreshed:1' WHERE position = {position}"
        )
    assert any("the chain hash differs" in found for found in findings(aged))


class Stopped(BaseException):
    """Stands for the end of the process."""


#: Where a run stops: a function of a module or class, whether after its work instead of before, and at which call.
STOPS: Final[dict[str, tuple[Any, str, bool, int]]] = {
    "before the first file": (SegmentFolder, "put", False, 1),
    "between two files": (SegmentFolder, "put", False, 2),
    "before a manifest entry": (SegmentFolder, "add_entry", False, 2),
    "after a manifest entry": (SegmentFolder, "add_entry", True, 2),
    "before it is read back": (archives, "verify_segments", False, 1),
    "before it is recorded": (move_states, "record_segments", False, 1),
    "while it is recorded": (sql, "insert", True, 1),
    "after it is recorded": (move_states, "record_segments", True, 1),
    "before the first state leaves": (move_states, "_remove_states", False, 1),
    "in the transaction of the first states": (move_states, "_remove_states", True, 1),
    "after some states have left": (move_states, "_remove_states", False, 3),
    "after the last state has left": (move_states, "archive_states", True, 1),
}
RETURN_STOPS: Final[dict[str, tuple[Any, str, bool, int]]] = {
    "before the first state returns": (move_states, "update_states", False, 1),
    "in the transaction of the first states": (move_states, "update_states", True, 1),
    "after some states have returned": (move_states, "update_states", False, 3),
    "before it is forgotten": (move_states, "_forget_archive", False, 1),
    "after it is forgotten": (move_states, "_forget_archive", True, 1),
}
#: At these stops, states have left the database.
_SAFE: Final = ("after some states have left", "after the last state has left")


def stopping(monkeypatch: pytest.MonkeyPatch, stop: tuple[Any, str, bool, int]) -> None:
    owner, name, after, call = stop
    function, calls = getattr(owner, name), iter(range(1, 1000))

    def counted(*arguments: Any, **options: Any) -> Any:
        is_stop = next(calls) == call
        if is_stop and not after:
            raise Stopped
        result = function(*arguments, **options)
        if is_stop:
            raise Stopped
        return result

    monkeypatch.setattr(owner, name, counted)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move_states, "BATCH", 10)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stop", STOPS)
def test_stopped_anywhere_every_state_is_somewhere(
    aged: Registry, place: Path, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, end = events(aged), end_of(aged)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        stopping(patch, STOPS[stop])
        archive_until(aged.store, aged.url, str(place), end)
    assert bool(archived_positions(aged.store)) == (stop in _SAFE)
    forget_cached_files(monkeypatch)
    assert events(aged) == before
    assert findings(aged) == []
    archive_until(aged.store, aged.url, str(place), end)
    assert archived_positions(aged.store) == archivable_positions(aged.store, end)
    assert events(aged) == before
    assert findings(aged) == []


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stop", RETURN_STOPS)
def test_stopped_on_the_way_back_every_state_is_somewhere(
    aged: Registry, place: Path, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, end = events(aged), end_of(aged)
    archive_until(aged.store, aged.url, str(place), end)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        stopping(patch, RETURN_STOPS[stop])
        unarchive_log(aged.store, no_progress)
    forget_cached_files(monkeypatch)
    assert events(aged) == before
    assert findings(aged) == []
    unarchive_log(aged.store, no_progress)
    assert archive_status(aged.store) == (None, [], 0)
    assert archived_positions(aged.store) == []
    assert events(aged) == before


@pytest.mark.parametrize("kind", ["log", "documents"])
def test_nothing_leaves_when_a_copy_is_read_back_with_another_byte(
    aged: Registry, place: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = SegmentFolder.put

    def spoiling(self: SegmentFolder, put_kind: str, *arguments: Any) -> Any:
        written = put(self, put_kind, *arguments)
        if put_kind == kind:
            flip_byte(place / written.path)
        return written

    monkeypatch.setattr(SegmentFolder, "put", spoiling)
    with pytest.raises(UnverifiedSegments):
        archive_until(aged.store, aged.url, str(place), end_of(aged))
    assert archive_status(aged.store) == (None, [], 0)
    assert archived_positions(aged.store) == []
    assert findings(aged) == []


def test_another_place_is_refused(aged: Registry, place: Path, tmp_path: Path) -> None:
    archive_until(aged.store, aged.url, str(place), 20)
    with pytest.raises(OtherArchive, match=re.escape(str(place))):
        archive_until(aged.store, aged.url, str(tmp_path / "other"), 40)
    assert not (tmp_path / "other").exists()


def test_the_segments_of_another_log_are_refused(aged: Registry, place: Path, tmp_path: Path) -> None:
    other_url = f"sqlite:///{tmp_path / 'other.db'}"
    with Registry(other_url) as other:
        record_interactions(other, 12)
        append_segments(other_url, open_folder(str(place)), SMALL)
    with pytest.raises(SegmentsMismatch):
        archive_until(aged.store, aged.url, str(place), end_of(aged))
    assert archive_status(aged.store) == (None, [], 0)


def test_an_archive_is_recorded_only_where_the_log_has_its_chain(aged: Registry, place: Path) -> None:
    archive_until(aged.store, aged.url, str(place), 20)
    status = archive_status(aged.store)
    unarchive_log(aged.store, no_progress)
    with pytest.raises(ArchiveChanged, match="position 1 is not of this store's log"):
        move_states.record_segments(aged.store, str(place), [(status.segments[0], b"another chain")])
    with pytest.raises(ArchiveChanged):
        move_states.archive_states(aged.store, 20, 0)
    assert archived_positions(aged.store) == []


def test_a_moved_archive_is_read_at_its_new_place(
    aged: Registry, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, moved = events(aged), tmp_path / "moved"
    archive_until(aged.store, aged.url, str(place), end_of(aged))
    forget_cached_files(monkeypatch)
    with pytest.raises(ArchiveUnavailable):
        move_archive(aged.store, str(moved), lambda reached, last: None)
    assert archive_status(aged.store).place == str(place)
    place.rename(moved)
    move_archive(aged.store, str(moved), lambda reached, last: None)
    assert events(aged) == before
    flip_byte(moved / archive_status(aged.store).segments[-1].path)
    with pytest.raises(ArchiveUnavailable):
        move_archive(aged.store, str(moved), lambda reached, last: None)


def test_a_place_is_recorded_without_secrets_and_for_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_place("archive") == absolute_place(f"file://{tmp_path}/archive") == str(tmp_path / "archive")
    with pytest.raises(ValueError, match="environment"):
        absolute_place("s3://key:secret@bucket/archive")


def test_a_store_without_an_archive_is_never_asked_for_one(aged: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads and writes of such a store never look an archive up."""

    def refuse(*_: object) -> Any:
        raise AssertionError("an archive was looked up")

    for name in ("archived_segments", "archive_place", "archive_files"):
        monkeypatch.setattr(state_reader, name, refuse)
    record_interactions(aged, 3)
    with aged.readers.view() as view:
        assert len([*view.log.events(1, end_of(aged))]) == end_of(aged)
        positions = [position for position, _ in events(aged)]
        assert len([*view.trail.revisions(positions, before=True)]) == end_of(aged)


def test_memory_and_open_files_are_bounded(aged: Registry, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive_until(aged.store, aged.url, str(place), end_of(aged), SegmentSize(5, 2))
    segments = archive_status(aged.store).segments
    expected = dict(events(aged))
    files, checked = ArchiveFiles(max_files=3, max_bytes=2000), list[str]()
    check = archive_files._check_content

    def noting(segment: ArchivedSegment, *content: Any) -> None:
        checked.append(segment.path)
        check(segment, *content)

    monkeypatch.setattr(archive_files, "_check_content", noting)
    for segment in segments:
        for position in range(segment.first, segment.last + 1):
            state = json.loads(files.state(segment, position))
            assert state["xid"] == expected[position].xid
        assert len(files._files._values) <= 3
        assert files._groups._size <= 2000 or len(files._groups._values) == 1
    assert checked == [segment.path for segment in segments]  # each file is checked once, when it is opened


def test_a_failing_place_is_not_asked_for_each_event(
    aged: Registry, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_until(aged.store, aged.url, str(place), end_of(aged))
    segment = archive_status(aged.store).segments[0]
    place.rename(place.with_name("away"))
    files, times = ArchiveFiles(), iter(range(1000))
    monkeypatch.setattr("annals.commands.store.archive.archive_files.time.monotonic", lambda: next(times) / 10)
    for _ in range(20):
        with suppress(ArchiveUnavailable):
            files.state(segment, 1)
    assert files.failures == 1
    place.with_name("away").rename(place)
    monkeypatch.setattr("annals.commands.store.archive.archive_files.time.monotonic", lambda: 1000.0)
    assert files.state(segment, 1)


def test_two_runs_at_once_record_each_segment_once(aged: Registry, place: Path) -> None:
    archive_until(aged.store, aged.url, str(place), 20)
    before, status = events(aged), archive_status(aged.store)
    with pytest.raises(ArchiveChanged, match=f"another process archived positions up to {status.last} meanwhile"):
        move_states.record_segments(aged.store, str(place), [(status.segments[0], b"")])
    assert (archive_status(aged.store), events(aged)) == (status, before)


@pytest.mark.usefixtures("small_batches")
def test_two_processes_move_everything_back_at_once(aged: Registry, place: Path) -> None:
    before, end = events(aged), end_of(aged)
    moved = archive_until(aged.store, aged.url, str(place), end).states
    runs: list[int] = []

    def run_another(reached: int, last: int) -> None:
        if reached == last:
            runs.append(move_states.restore_states(aged.store))

    restored = move_states.restore_states(aged.store, run_another)
    assert (restored, runs) == (moved, [0])
    assert archive_status(aged.store) == (None, [], 0)
    assert events(aged) == before


def test_what_is_archived_while_states_move_back_stays_archived(aged: Registry, place: Path) -> None:
    archive_until(aged.store, aged.url, str(place), 20)

    def archive_more(reached: int, last: int) -> None:
        if reached == last:
            archive_until(aged.store, aged.url, str(place), end_of(aged))

    with pytest.raises(ArchiveChanged, match="another process is archiving"):
        move_states.restore_states(aged.store, archive_more)
    assert archived_positions(aged.store) == archivable_positions(aged.store, end_of(aged))
