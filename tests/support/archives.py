"""Archives of stores: made up to a position, damaged, and read without the caches of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from annals.commands.store.archive import archive_files
from annals.commands.store.archive.archive_files import ArchiveFiles
from annals.commands.store.log import Store
from annals.projections.database.drivers import database_of
from annals.projections.log.reader import Log
from annals.projections.segments.archive import ArchiveSummary, StartStep, archive_log
from annals.projections.segments.write import SegmentSize

#: Small segments, so that a short log has several segments and row groups.
SMALL = SegmentSize(7, 3)


def no_progress(word: str) -> Callable[[int, int], None]:
    return lambda reached, last: None


def archive_until(
    store: Store,
    url: str,
    place: str,
    position: int,
    size: SegmentSize = SMALL,
    start_step: StartStep = no_progress,
) -> ArchiveSummary:
    """Archives the interactions up to the one at a position."""
    with store.engine.begin() as connection:
        until = Log(database_of(connection)).interaction_at(position).last
    return archive_log(store, url, place, until, start_step, size)


def archived_positions(store: Store) -> list[int]:
    """The positions of events whose states only the archive has."""
    return _column(store, "SELECT position FROM log WHERE length(state) = 0 ORDER BY position")


def archivable_positions(store: Store, until: int) -> list[int]:
    """The positions up to `until` whose states can be archived: inside the tree, and not the last of a stream."""
    return _column(
        store,
        "SELECT position FROM log WHERE position NOT IN (SELECT position FROM head) AND stream NOT LIKE '/-/%%'"
        f" AND stream NOT LIKE '/subscriptions/%%' AND position <= {until} ORDER BY position",
    )


@contextmanager
def open_store(url: str) -> Iterator[Store]:
    with closing(Store(url)) as store:
        yield store


def forget_cached_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empties the cache of archive files, so that the process reads archives as a new process does."""
    monkeypatch.setattr(archive_files, "ARCHIVE_FILES", ArchiveFiles())


def flip_byte(path: Path, at: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    path.write_bytes(content)


def _column(store: Store, statement: str) -> list[Any]:
    with store.engine.connect() as connection:
        return list(connection.exec_driver_sql(statement).scalars())
