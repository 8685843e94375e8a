"""Verifies, from the files alone, that segments are an unchanged log; and that they agree with a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from typing import Final

from annals.commands.store.mapper import UnreadableEvent
from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.database.connections import connect
from annals.projections.log.table_rows import LogTableRow
from annals.projections.segments.columns import document_rows, log_rows
from annals.projections.segments.folder import MISSING_SEGMENT, SegmentFolder
from annals.projections.segments.known_documents import KnownDocuments, document_hash_of
from annals.projections.segments.log_agreement import NO_SEGMENTS, SegmentsEnd, SegmentsMismatch, matching_end
from annals.projections.segments.manifest import ManifestEntry, SegmentRange, UnreadableManifestEntry
from annals.projections.segments.verify_chain import ChainVerifier
from annals.projections.segments.verify_files import BROKEN_CHAIN, verify_file
from annals.projections.segments.write import ProgressCallback, load_hashes

#: The number of events between two reports of progress.
_REPORT_EVERY: Final = 1000


def verify_segments(
    folder: SegmentFolder,
    progress: ProgressCallback = lambda reached, last: None,
    start: SegmentsEnd = NO_SEGMENTS,
) -> Iterator[VerificationFinding]:
    """Everything that is wrong with a folder, by position; nothing when it is intact.

    Checks the hashes of files and documents, the chain, and that no position or document is missing. Reads each file
    twice; memory is that of a row group or of the largest document.
    start: the end of segments that were verified before; of these, it reads only the names of documents.
    """
    ranges, missing = folder.sequence(start.last)
    with closing(KnownDocuments()) as known_documents:
        if start.last and ranges:
            load_hashes(folder, known_documents, start.last)
        verifier = _SegmentVerifier(folder, known_documents, start, lambda reached: progress(reached, ranges[-1].last))
        for range in ranges:
            yield from verifier.verify_segment(range)
    if missing:
        yield VerificationFinding(missing, MISSING_SEGMENT)


def compare_with_store(folder: SegmentFolder, url: str) -> Iterator[VerificationFinding]:
    """Where the folder starts to differ from the log of a store. url: of its database."""
    with closing(connect(url)) as reader:
        try:
            matching_end(reader, folder)
        except SegmentsMismatch as error:
            yield VerificationFinding(error.position, str(error))
        except (UnreadableManifestEntry, OSError):
            return  # `verify_segments` reports these


class _SegmentVerifier:
    """Verifies one segment after another; the one after a damaged segment is compared with the manifest's values."""

    def __init__(
        self,
        folder: SegmentFolder,
        known_documents: KnownDocuments,
        start: SegmentsEnd,
        report_position: Callable[[int], None],
    ) -> None:
        """report_position: receives the position of each thousandth event, and of the last one of a segment."""
        self._folder = folder
        self._report_position = report_position
        self._seen_documents = known_documents
        self._chain = start.chain

    def verify_segment(self, range: SegmentRange) -> Iterator[VerificationFinding]:
        try:
            entry = self._folder.entry(range)
        except (UnreadableManifestEntry, OSError) as error:
            yield VerificationFinding(range.first, str(error))
            return
        if entry.range != range or entry.previous != self._chain.hex():
            yield VerificationFinding(range.first, BROKEN_CHAIN)
        for file in entry.files:
            if finding := verify_file(self._folder, range, file):
                yield finding
        yield from self._verify_documents(entry)
        yield from self._verify_log(entry)
        self._chain = bytes.fromhex(entry.chain)

    def _verify_documents(self, entry: ManifestEntry) -> Iterator[VerificationFinding]:
        if entry.documents is None:
            return
        try:
            with self._folder.open(entry.documents.path) as file:
                for row in document_rows(file):
                    if sha256(row.content).hexdigest() == row.sha256:
                        self._seen_documents.add([row.sha256])
        except (OSError, ValueError, TypeError) as error:
            yield VerificationFinding(
                entry.first, f"{entry.documents.path} cannot be read further: {_first_line(error)}"
            )

    def _verify_log(self, entry: ManifestEntry) -> Iterator[VerificationFinding]:
        chain_verifier = ChainVerifier(entry.first - 1, self._chain)
        try:
            with self._folder.open(entry.log.path) as file:
                for row in log_rows(file):
                    if finding := chain_verifier.check_row(row):
                        yield finding
                    yield from self._verify_document(row)
                    if row.position % _REPORT_EVERY == 0 or row.position == entry.last:
                        self._report_position(row.position)
        except (OSError, ValueError, TypeError) as error:
            yield VerificationFinding(
                chain_verifier.position + 1, f"{entry.log.path} cannot be read further: {_first_line(error)}"
            )
            return
        actual_end = (
            chain_verifier.last,
            chain_verifier.interactions,
            chain_verifier.chain.hex(),
            chain_verifier.statehash.hex(),
        )
        if actual_end != (entry.last, entry.interactions, entry.chain, entry.statehash):
            yield VerificationFinding(entry.last, "the segment does not end as the manifest says")

    def _verify_document(self, row: LogTableRow) -> Iterator[VerificationFinding]:
        try:
            digest = document_hash_of(row)
        except UnreadableEvent:
            yield VerificationFinding(row.position, "the event cannot be read")
            return
        if digest is not None and digest not in self._seen_documents:
            yield VerificationFinding(row.position, f"the document {digest} is missing or changed")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
