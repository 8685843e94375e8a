"""Segments in an object store, over the S3 protocol: the same as in a local folder."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from annals.projections.segments.folder import NoSegments, open_folder
from annals.projections.segments.read import documents, rows
from annals.projections.segments.verify import compare_with_store, verify_segments
from annals.projections.segments.write import SegmentSize, append_segments
from tests.support.registries.recorded import Registry
from tests.support.s3 import CLIENT, S3, s3_store
from tests.support.segment_logs import files_below, log_rows, record_interactions, stored_documents
from tests.support.serving import environment

pytestmark = pytest.mark.uses("S3Proxy")

SIZE = SegmentSize(7, 3)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_store(tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CLIENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def grown(sqlite_url: str) -> Iterator[Registry]:
    with Registry(sqlite_url) as registry:
        record_interactions(registry, 40)
        yield registry


@pytest.mark.parametrize("scheme", ["s3", pytest.param("s3a", marks=pytest.mark.long)])
def test_a_bucket_holds_what_a_folder_does(grown: Registry, s3: S3, tmp_path: Path, scheme: str) -> None:
    bucket, local = open_folder(s3.uri(scheme, f"{scheme}/annals")), open_folder(str(tmp_path / "segments"))
    for start in (40, 50):
        append_segments(grown.url, bucket, SIZE)
        append_segments(grown.url, local, SIZE)
        assert files_below(s3.bucket / scheme / "annals") == files_below(tmp_path / "segments")
        record_interactions(grown, 10, start=start)
    log = log_rows(grown.store.engine)
    assert list(rows(bucket)) == log[: bucket.ranges()[-1].last]
    assert [*verify_segments(bucket), *compare_with_store(bucket, grown.url)] == []


def test_a_missing_bucket_has_no_segments(s3: S3) -> None:
    with pytest.raises(NoSegments, match="there are no segments at s3://none/annals"):
        open_folder(s3.uri("s3", "annals").replace("lake", "none", 1)).unbroken_ranges()


@pytest.mark.long
def test_segment_writing_to_a_bucket_resumes_after_kill(grown: Registry, s3: S3, tmp_path: Path) -> None:
    # An object becomes visible when it is complete, so there are no unfinished files.
    uri, place = s3.uri("s3", "killed"), s3.bucket / "killed"
    command = [sys.executable, "-m", "annals", "segments", "write", "--folder", uri, "--events", "3"]
    for kind in ("log", "documents", "manifest"):
        known = objects(place / kind)
        env = environment(ANNALS_DATABASE=grown.url, **CLIENT)
        process = subprocess.Popen(command, cwd=tmp_path, env=env)
        while process.poll() is None and objects(place / kind) <= known:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    folder = open_folder(uri)
    assert list(verify_segments(folder)) == []
    append_segments(grown.url, folder, SegmentSize(3))
    assert list(verify_segments(folder)) == []
    assert list(rows(folder)) == log_rows(grown.store.engine)
    assert dict(documents(folder)) == stored_documents(grown.store.engine)


def objects(place: Path) -> int:
    """The number of complete objects; the store writes them under other names first."""
    return sum(path.suffix in (".parquet", ".json") for path in place.iterdir()) if place.is_dir() else 0


def test_uris_are_printed_without_secrets(s3: S3) -> None:
    assert open_folder(s3.uri("s3", "x").replace("//", "//tester:secret@", 1)).name == "s3://lake/x"
