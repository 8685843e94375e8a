"""Writes the log as segments, continuing at the folder's end; each segment is complete or does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from itertools import islice
from tempfile import TemporaryFile
from typing import Final, NamedTuple

from annals.commands.store.hashes import Interaction
from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.database.connections import ReadConnection, connect
from annals.projections.log import documents
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import SCHEMA_VERSION, LogTableRow, table_rows
from annals.projections.segments.columns import (
    DOCUMENT_FILE_SCHEMA,
    LOG_FILE_SCHEMA,
    DocumentRow,
    document_hashes,
    write_table,
)
from annals.projections.segments.folder import SegmentFolder
from annals.projections.segments.known_documents import KnownDocuments, document_hash_of
from annals.projections.segments.log_agreement import SegmentsEnd, matching_end
from annals.projections.segments.manifest import ManifestEntry, SegmentRange
from annals.projections.segments.verify_chain import ChainVerifier

#: Called with the position reached and the last position.
ProgressCallback = Callable[[int, int], None]

_TABLES: Final = ("log", "interaction", "document")
#: The number of interactions read together, and of events between two progress reports.
_PAGE_SIZE: Final = 1000


class DamagedLog(Exception):
    """The log has changed since it was written, so it is not written to segments."""

    def __init__(self, finding: VerificationFinding) -> None:
        super().__init__(f"position {finding.position}: {finding.text}")


class DamagedSegment(Exception):
    """A file of a segment is missing, or not what was written; the message names it and says why."""


class SegmentSize(NamedTuple):
    """How the log is split.

    events: of a segment, which continues to the end of the interaction that fills it. row_group_size: the maximum rows
    of a row group. full_only: leave out the end of the log until it fills a segment.
    """

    events: int = 100_000
    row_group_size: int = 20_000
    full_only: bool = False


class WriteSummary(NamedTuple):
    """The number of added segments and events, and the new end position of the folder."""

    segments: int
    events: int
    last: int


def append_segments(
    url: str,
    folder: SegmentFolder,
    size: SegmentSize | None = None,
    progress: ProgressCallback = lambda reached, last: None,
    until: int | None = None,
) -> WriteSummary:
    """Writes the segments that the folder lacks; returns a summary.

    Memory is that of a row group or of the largest document, whatever the size of the log or of an interaction. A
    segment stays in the system's temporary folder until it is sent.
    url: of the database. until: the end of the interaction to stop at; None for the end of the log.
    Raises: SegmentsMismatch when the folder has another log, DamagedLog, UnreadableEvent, UnreadableManifestEntry,
    DamagedSegment, ConcurrentWriteError; OSError when the folder cannot be read or written.
    """
    size = size or SegmentSize()

    def report(reached: int, log_end: int) -> None:
        progress(reached, log_end if until is None else until)

    with closing(connect(url)) as reader, closing(KnownDocuments()) as known_documents:
        writer, end = (
            _SegmentWriter(reader, folder, size.row_group_size, known_documents, report),
            matching_end(reader, folder),
        )
        segments = events = 0
        while (range := _next_range(Log(reader), end.last, size, until)) is not None:
            written_end = writer.write_segment(end, range)
            segments, events = segments + 1, events + written_end.last - end.last
            # Others may have continued from here already: another process, or an earlier run before a file was lost.
            end = max(written_end, matching_end(reader, folder))
            writer.has_loaded_hashes = writer.has_loaded_hashes and end == written_end
        folder.remove_unfinished(end.last)
    return WriteSummary(segments, events, end.last)


def _next_range(log: Log, after: int, size: SegmentSize, until: int | None) -> SegmentRange | None:
    """The range of the next segment: up to the interaction that fills it, or to the end."""
    log_end = log.head().last if until is None else until
    filling_interactions = log.interactions(after + size.events - 1, 1)
    filled_end = filling_interactions[0].last if filling_interactions else log_end
    last = after if size.full_only and not filling_interactions else min(filled_end, log_end)
    return SegmentRange(after + 1, last) if last > after else None


class _SegmentWriter:
    def __init__(
        self,
        reader: ReadConnection,
        folder: SegmentFolder,
        row_group_size: int,
        known_documents: KnownDocuments,
        progress: ProgressCallback,
    ) -> None:
        self._reader = reader
        self._folder = folder
        self._row_group_size = row_group_size
        self._seen_documents = known_documents
        self._progress = progress
        self.has_loaded_hashes = False  # whether the documents of all segments are known

    def write_segment(self, previous_end: SegmentsEnd, range: SegmentRange) -> SegmentsEnd:
        """Writes a segment; returns its end."""
        chain_verifier = ChainVerifier(*previous_end)
        with TemporaryFile() as log_file, TemporaryFile() as document_file:
            # Sending may take long, and a database keeps old rows while a reader's transaction is open.
            with self._reader.snapshot(_TABLES):
                events = write_table(
                    log_file, LOG_FILE_SCHEMA, self._verified_rows(range, chain_verifier), self._row_group_size, "state"
                )
                document_count = write_table(
                    document_file, DOCUMENT_FILE_SCHEMA, self._new_documents(), self._row_group_size, "content"
                )
            entry = ManifestEntry(
                schemaversion=SCHEMA_VERSION,
                first=range.first,
                last=range.last,
                events=events,
                interactions=chain_verifier.interactions,
                previous=previous_end.chain.hex(),
                chain=chain_verifier.chain.hex(),
                statehash=chain_verifier.statehash.hex(),
                log=self._folder.put("log", range, events, log_file),
                documents=self._folder.put("documents", range, document_count, document_file)
                if document_count
                else None,
            )
        self._folder.add_entry(entry)
        self._seen_documents.merge_references()
        return SegmentsEnd(chain_verifier.last, chain_verifier.chain)

    def _verified_rows(self, range: SegmentRange, chain_verifier: ChainVerifier) -> Iterator[LogTableRow]:
        """The verified rows of the segment; records the documents that they refer to."""
        log = Log(self._reader)
        log_end = log.head().last
        for row in rows_between(log, range):
            if finding := chain_verifier.check_row(row):
                raise DamagedLog(finding)
            if (digest := document_hash_of(row)) is not None:
                self._seen_documents.add_reference(digest, row.position)
            if row.position % _PAGE_SIZE == 0 or row.position == range.last:
                self._progress(row.position, log_end)
            yield row
        if chain_verifier.last != range.last:
            raise DamagedLog(VerificationFinding(chain_verifier.position + 1, "events are missing"))

    def _new_documents(self) -> Iterator[DocumentRow]:
        """Documents that no earlier segment has."""
        if not self._seen_documents.has_references():
            return
        if not self.has_loaded_hashes:
            load_hashes(self._folder, self._seen_documents)
            self.has_loaded_hashes = True
        for digest, position in self._seen_documents.new_references():
            content = documents.document_bytes(self._reader, digest)
            if content is None or sha256(content).hexdigest() != digest:
                raise DamagedLog(VerificationFinding(position, f"the document {digest} is missing or changed"))
            yield DocumentRow(digest, content)


def load_hashes(folder: SegmentFolder, known_documents: KnownDocuments, until: int | None = None) -> None:
    """Adds the hashes of the documents in the segments of earlier runs. until: the end of the last of these.

    Raises: DamagedSegment; UnreadableManifestEntry; OSError when the folder cannot be read.
    """
    for entry in folder.entries(range for range in folder.ranges() if until is None or range.last <= until):
        if entry.documents:
            try:
                with folder.open(entry.documents.path) as file:
                    known_documents.add(document_hashes(file))
            except FileNotFoundError:
                raise DamagedSegment(f"{entry.documents.path} is missing") from None
            except ValueError as error:  # also those of Arrow
                raise DamagedSegment(f"{entry.documents.path}: {error}") from error


def rows_between(log: Log, range: SegmentRange) -> Iterator[LogTableRow]:
    """The rows of whole interactions, in order, streamed."""
    events = log.events(*range)
    for interaction in _interactions(log, range):
        yield from table_rows(interaction, islice(events, interaction.last - interaction.first + 1))


def _interactions(log: Log, range: SegmentRange) -> Iterator[Interaction]:
    after = range.first - 1
    while after < range.last and (page := log.interactions(after, _PAGE_SIZE)):
        yield from (interaction for interaction in page if interaction.last <= range.last)
        after = page[-1].last
