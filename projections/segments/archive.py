"""Archives the log: writes segments, reads them back, records them, and only then takes states out of the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from annals.commands.store.archive import move_states
from annals.commands.store.archive.archived_segment import ArchivedSegment
from annals.commands.store.archive.move_states import ArchiveChanged, ProgressCallback
from annals.commands.store.archive.state_reader import archive_files, archive_place, archived_segments, query_of
from annals.commands.store.filesystems import filesystem_at
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.database.drivers import database_of
from annals.projections.log.reader import Log
from annals.projections.segments.folder import SegmentFolder, open_folder
from annals.projections.segments.log_agreement import SegmentsEnd
from annals.projections.segments.manifest import ManifestEntry, SegmentRange
from annals.projections.segments.verify import verify_segments
from annals.projections.segments.verify_chain import ChainVerifier
from annals.projections.segments.write import SegmentSize, append_segments, rows_between

#: Small files and row groups: a reader of one old event reads a file once, and decodes a row group.
ARCHIVE_SIZE: Final = SegmentSize(events=20_000, row_group_size=1000)

#: Returns the function that receives the progress of a step, such as `verified`.
StartStep = Callable[[str], ProgressCallback]


class OtherArchive(Exception):
    """The store has its archive at another place."""


class UnverifiedSegments(Exception):
    """Segments that were read back are not the log; nothing has left the database. findings: what is wrong."""

    def __init__(self, findings: list[VerificationFinding]) -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings


class ArchiveStatus(NamedTuple):
    """The archive of a store: its path or URI, its segments, and its last position, 0 without an archive."""

    place: str | None
    segments: list[ArchivedSegment]
    last: int


class ArchiveSummary(NamedTuple):
    """The number of new segments, the number of states that left the database, and the last position of the archive."""

    segments: int
    states: int
    last: int


def absolute_place(uri: str) -> str:
    """The path or URI as a store records it: it means the same to all processes, and has no credentials.

    Raises: ValueError; OSError when the filesystem does not respond.
    """
    split_uri = urlsplit(uri)
    if "@" in split_uri.netloc:
        raise ValueError("credentials belong into the environment, because the store records the place")
    filesystem, root = filesystem_at(uri)
    return root if filesystem.type_name == "local" else uri


def archive_status(store: Store) -> ArchiveStatus:
    """The archive as the store records it."""
    with store.engine.begin() as connection:
        segments = archived_segments(query_of(connection))
        return ArchiveStatus(archive_place(query_of(connection)), segments, segments[-1].last if segments else 0)


def archive_log(
    store: Store, url: str, place: str, until: int, start_step: StartStep, size: SegmentSize = ARCHIVE_SIZE
) -> ArchiveSummary:
    """Moves the states of the log up to a position to the archive; returns a summary.

    An interrupted run leaves a complete store: repeat it with the same arguments to complete the work. Servers may run.
    url: of the store's database. place: see `absolute_place`. until: the end of an interaction. size: of new segments.
    Raises: OtherArchive; UnverifiedSegments; ArchiveChanged; ArchiveUnavailable, when a file of the archive is damaged
    that has the only other copy of a state; errors of `append_segments`.
    """
    status, folder = archive_status(store), open_folder(place)
    if status.place not in (None, place):
        raise OtherArchive(f"the archive of the store is {status.place}")
    new_segments = 0
    if status.last < until:
        append_segments(url, folder, size, start_step("wrote"), until)
        new_segments = _record_new_segments(store, status, folder, place, until, start_step("verified"))
    states = move_states.archive_states(store, until, status.last, start_step("archived"))
    return ArchiveSummary(new_segments, states, archive_status(store).last)


def unarchive_log(store: Store, start_step: StartStep) -> int:
    """Copies all states back into the database, and forgets the archive; returns their number. The files stay.

    Reads the archive twice: it proves the chain of all events before it changes anything.
    Raises: ArchiveUnavailable; UnverifiedSegments; ArchiveChanged.
    """
    _prove_log(store, archive_status(store).last, start_step("verified"))
    return move_states.restore_states(store, start_step("restored"))


def move_archive(store: Store, place: str, progress: ProgressCallback) -> None:
    """Records another place of the same files, after reading all of them there.

    Raises: ArchiveUnavailable, ArchiveChanged when the store has no archive; then nothing changes.
    """
    status = archive_status(store)
    if status.place is None:
        raise ArchiveChanged("the store has no archive")
    for segment in status.segments:
        moved_segment = segment._replace(place=place)
        archive_files(moved_segment).check(moved_segment)
        progress(segment.last, status.last)
    move_states.move_archive(store, place)


def _record_new_segments(
    store: Store, status: ArchiveStatus, folder: SegmentFolder, place: str, until: int, progress: ProgressCallback
) -> int:
    """Reads the segments back that the archive lacks, and records them; returns their number."""
    start = SegmentsEnd(status.last, _chain_at(store, status.last))
    if findings := list(verify_segments(folder, progress, start)):
        raise UnverifiedSegments(findings)
    entries = [entry for entry in folder.entries(folder.ranges(status.last)) if entry.first <= until]
    if not entries or entries[-1].last < until:
        raise ArchiveChanged(f"{folder.name} has no segments from position {status.last + 1} to {until}")
    move_states.record_segments(store, place, [_archived_segment(place, entry) for entry in entries])
    return len(entries)


def _archived_segment(place: str, entry: ManifestEntry) -> tuple[ArchivedSegment, bytes]:
    file = entry.log
    segment = ArchivedSegment(place, entry.first, entry.last, file.path, file.bytes, file.sha256)
    return segment, bytes.fromhex(entry.chain)


def _chain_at(store: Store, position: int) -> bytes:
    with store.engine.begin() as connection:
        return Log(database_of(connection)).interaction_at(position).chain


def _prove_log(store: Store, until: int, progress: ProgressCallback) -> None:
    """Raises: UnverifiedSegments when the chain of the log up to a position is broken; ArchiveUnavailable."""
    chain_verifier, findings = ChainVerifier(), list[VerificationFinding]()
    with store.engine.begin() as connection:
        for row in rows_between(Log(database_of(connection)), SegmentRange(1, until)):
            findings += filter(None, (chain_verifier.check_row(row),))
            if row.position == row.last:
                progress(row.position, until)
    if findings or chain_verifier.last != until:
        raise UnverifiedSegments(findings or [VerificationFinding(chain_verifier.position + 1, "events are missing")])
