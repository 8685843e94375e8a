"""Writers that are killed or run at the same time: a segment exists as a whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from annals.projections.segments.folder import SegmentFolder, open_folder
from annals.projections.segments.read import documents, rows
from annals.projections.segments.verify import verify_segments
from annals.projections.segments.write import SegmentSize, append_segments
from tests.support.registries.recorded import Registry
from tests.support.segment_logs import files_below, log_rows, record_interactions, stored_documents
from tests.support.serving import environment

pytestmark = pytest.mark.long

SIZE = SegmentSize(3, 2)


def started(registry: Registry, folder: Path) -> subprocess.Popen[bytes]:
    """Starts a writer in its own process."""
    sizes = ["--events", str(SIZE.events), "--group", str(SIZE.row_group_size)]
    command = [sys.executable, "-m", "annals", "segments", "write", "--folder", str(folder), *sizes]
    env = environment(ANNALS_DATABASE=registry.url)
    return subprocess.Popen(command, cwd=folder.parent, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def files(folder: Path, pattern: str) -> int:
    return sum(1 for _ in folder.glob(pattern))


def whole(registry: Registry, folder: SegmentFolder) -> None:
    assert list(verify_segments(folder)) == []
    assert list(rows(folder)) == log_rows(registry.store.engine)
    assert dict(documents(folder)) == stored_documents(registry.store.engine)


#: The file that triggers the kill of each writer when it appears.
MOMENTS = ["log/*.part", "log/*.parquet", "documents/*.parquet", "manifest/*.json"]


def test_segment_writing_resumes_after_kill(registry: Registry, folder: SegmentFolder, tmp_path: Path) -> None:
    # kill -9 leaves complete segments, and the next writer neither loses nor repeats an event.
    record_interactions(registry, 200)
    place = tmp_path / "segments"
    for moment in MOMENTS:
        known, process = files(place, moment), started(registry, place)
        while process.poll() is None and files(place, moment) <= known:
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert list(verify_segments(folder)) == []
        kept = list(rows(folder)) if folder.ranges() else []
        assert kept == log_rows(registry.store.engine)[: len(kept)]
    append_segments(registry.url, folder, SIZE)
    whole(registry, folder)
    assert files(place, "*/*.part") == 0


#: What a killed writer left: the files to remove from a complete folder, and those to add to it.
LEFTOVERS = {
    "data without an entry": (["manifest/{last}*"], []),
    "documents without their log": (["manifest/{last}*", "log/{last}*"], []),
    "parts of everything": (
        ["*/{last}*"],
        ["log/{last}.x.part", "documents/{last}.x.part", "manifest/{last}.json.x.part"],
    ),
    "a part of what is complete": ([], ["log/{last}.x.part"]),
}


@pytest.mark.parametrize(("gone", "left"), LEFTOVERS.values(), ids=LEFTOVERS)
def test_leftovers_are_cleared_and_the_same_files_come_again(
    registry: Registry, folder: SegmentFolder, tmp_path: Path, gone: list[str], left: list[str]
) -> None:
    record_interactions(registry, 40)
    append_segments(registry.url, folder, SIZE)
    place, last = tmp_path / "segments", folder.ranges()[-2]
    before = files_below(place)
    for pattern in gone:
        for path in place.glob(pattern.format(last=last)):
            path.unlink()
    for name in left:
        (place / name.format(last=last)).write_bytes(b"PAR1 half of it")
    append_segments(registry.url, folder, SIZE)
    assert files_below(place) == before


def test_files_of_others_stay(registry: Registry, folder: SegmentFolder, tmp_path: Path) -> None:
    record_interactions(registry, 5)
    append_segments(registry.url, folder, SIZE)
    place = tmp_path / "segments"
    for name in ("log/_SUCCESS", "manifest/README.json", "log/notes.part"):
        (place / name).write_text("mine")
    before = files_below(place)
    append_segments(registry.url, folder, SIZE)
    assert files_below(place) == before
    whole(registry, folder)


def test_writers_at_the_same_time_do_no_harm(registry: Registry, folder: SegmentFolder, tmp_path: Path) -> None:
    record_interactions(registry, 60)
    place = tmp_path / "segments"
    processes = [started(registry, place) for _ in range(3)]
    for process in processes:
        output, _ = process.communicate(timeout=100)
        assert process.returncode == 0, output.decode()
    whole(registry, folder)


def test_writers_that_cut_the_log_differently_leave_one_way_through_it(
    registry: Registry, folder: SegmentFolder, tmp_path: Path
) -> None:
    # If segments begin at the same position, the chain that reaches farthest counts, also after the next run.
    record_interactions(registry, 12)
    append_segments(registry.url, folder, SegmentSize(5))
    half = tmp_path / "half"
    record_interactions(registry, 12, start=12)
    append_segments(registry.url, folder, SegmentSize(9))
    append_segments(registry.url, open_folder(str(half)), SegmentSize(4))
    for name, content in files_below(half).items():
        (tmp_path / "segments" / name).write_bytes(content)
    assert folder.list_ranges() != folder.ranges()
    whole(registry, folder)
    record_interactions(registry, 5, start=24)
    append_segments(registry.url, folder, SegmentSize(5))
    assert list(rows(folder)) == log_rows(registry.store.engine)
    assert list(verify_segments(folder)) == []
