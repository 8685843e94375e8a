"""An archive in an object store, over the S3 protocol: reads, damaged objects, and the way back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from annals.commands.verify.verify_log import verify_row_hashes
from annals.domain.errors.http_errors import ArchiveUnavailable
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.segments.archive import archive_status, unarchive_log
from tests.support.archives import archive_until, archived_positions, flip_byte, forget_cached_files, no_progress
from tests.support.registries.recorded import Registry
from tests.support.s3 import CLIENT, S3, s3_store
from tests.support.segment_logs import record_interactions

pytestmark = pytest.mark.uses("S3Proxy")


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_store(tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CLIENT.items():
        monkeypatch.setenv(name, value)


def test_a_bucket_is_an_archive(sqlite_url: str, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    place = s3.uri("s3", "archive")
    with Registry(sqlite_url) as registry:
        for _ in range(3):
            record_interactions(registry, 12)
        store, end = registry.store, registry.store.log_end().position
        before = store.events(0, 10_000)
        archive_until(store, sqlite_url, place, end // 2)
        archive_until(store, sqlite_url, place, end)
        moved = archived_positions(store)
        assert len(moved) > end // 2
        forget_cached_files(monkeypatch)
        assert store.events(0, 10_000) == before
        for position, event in random.Random(1).sample(before, 40):
            assert store.events(position - 1, 1) == [(position, event)]
        assert [*verify_row_hashes(store), *verify_history(store)] == []
        check_damage(registry, s3.bucket / "archive", monkeypatch)
        forget_cached_files(monkeypatch)
        assert unarchive_log(store, no_progress) == len(moved)
        assert store.events(0, 10_000) == before


def check_damage(registry: Registry, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed or missing object is refused, and the others can still be read."""
    segments = archive_status(registry.store).segments
    for spoil, repair in (
        (flip_byte, flip_byte),
        (lambda path: path.rename(folder / "away"), lambda path: (folder / "away").rename(path)),
    ):
        path = folder / segments[1].path
        spoil(path)
        forget_cached_files(monkeypatch)
        assert registry.store.events(0, segments[0].last)
        with pytest.raises(ArchiveUnavailable, match="archive"):
            registry.store.events(0, 10_000)
        repair(path)
