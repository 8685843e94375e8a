"""Shows from the files alone that segments are the log that was once written, and that they are the log of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256

from commands.mapper import UnreadableEvent
from commands.verify import Finding
from projections.connect import connect
from projections.logrows import TableRow
from projections.segments.agreement import Foreign, agreed
from projections.segments.columns import document_rows, log_rows
from projections.segments.entries import Entry, Range, UnknownSegment
from projections.segments.folder import Folder
from projections.segments.intact import UNCONNECTED, file_finding, missing
from projections.segments.links import Links
from projections.segments.seen import Seen, document_of
from projections.segments.write import Progress


def verify(folder: Folder, progress: Progress = lambda reached, last: None) -> Iterator[Finding]:
    """Everything that is wrong with a folder, by position; nothing when it is whole.

    Hashes of files and documents, the chain, and that there is every position and every document. Reads each
    file twice; memory is that of a row group or of the largest document.
    """
    ranges = folder.ranges()
    with closing(Seen()) as seen:
        walk = _Walk(folder, seen)
        for range in ranges:
            yield from walk.segment(range)
            progress(range.last, ranges[-1].last)
    if finding := missing(folder, ranges[-1].last if ranges else 0):
        yield finding


def compare(folder: Folder, url: str) -> Iterator[Finding]:
    """Where the folder ceases to have the log of a store. url: of its database."""
    with closing(connect(url)) as reader:
        try:
            agreed(reader, folder)
        except Foreign as error:
            yield Finding(error.position, str(error))
        except (UnknownSegment, OSError):
            return  # `verify` tells about those


class _Walk:
    """From segment to segment; the one after a damaged one is measured against what the manifest says of that."""

    def __init__(self, folder: Folder, seen: Seen) -> None:
        self._folder = folder
        self._seen = seen
        self._chain = Links().chain

    def segment(self, range: Range) -> Iterator[Finding]:
        try:
            entry = self._folder.entry(range)
        except (UnknownSegment, OSError) as error:
            yield Finding(range.first, str(error))
            return
        if entry.range != range or entry.previous != self._chain.hex():
            yield Finding(range.first, UNCONNECTED)
        for file in entry.files:
            if finding := file_finding(self._folder, range, file):
                yield finding
        yield from self._documents(entry)
        yield from self._log(entry)
        self._chain = bytes.fromhex(entry.chain)

    def _documents(self, entry: Entry) -> Iterator[Finding]:
        if entry.documents is None:
            return
        try:
            with self._folder.open(entry.documents.path) as file:
                for row in document_rows(file):
                    if sha256(row.content).hexdigest() == row.sha256:
                        self._seen.add([row.sha256])
        except (OSError, ValueError, TypeError) as error:
            yield Finding(entry.first, f"{entry.documents.path} cannot be read on: {_line(error)}")

    def _log(self, entry: Entry) -> Iterator[Finding]:
        links = Links(entry.first - 1, self._chain)
        try:
            with self._folder.open(entry.log.path) as file:
                for row in log_rows(file):
                    if finding := links.take(row):
                        yield finding
                    yield from self._document(row)
        except (OSError, ValueError, TypeError) as error:
            yield Finding(links.position + 1, f"{entry.log.path} cannot be read on: {_line(error)}")
            return
        found = links.last, links.interactions, links.chain.hex(), links.statehash.hex()
        if found != (entry.last, entry.interactions, entry.chain, entry.statehash):
            yield Finding(entry.last, "the segment does not end as the manifest says")

    def _document(self, row: TableRow) -> Iterator[Finding]:
        try:
            digest = document_of(row)
        except UnreadableEvent:
            yield Finding(row.position, "the event cannot be read")
            return
        if digest is not None and digest not in self._seen:
            yield Finding(row.position, f"the document {digest} is missing or changed")


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
