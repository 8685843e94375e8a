"""Reads the contents of segments."""

from __future__ import annotations

from collections.abc import Iterator

from annals.projections.log.table_rows import LogTableRow
from annals.projections.segments.columns import DocumentRow, document_rows, log_rows
from annals.projections.segments.folder import SegmentFolder


def rows(folder: SegmentFolder) -> Iterator[LogTableRow]:
    """Every event of the folder, in order, a part of a row group at a time.

    Raises: NoSegments; MissingSegment; UnreadableManifestEntry; OSError or ValueError for a damaged file.
    """
    for entry in folder.entries(folder.unbroken_ranges()):
        with folder.open(entry.log.path) as file:
            yield from log_rows(file)


def documents(folder: SegmentFolder) -> Iterator[DocumentRow]:
    """Every document that those events refer to, once.

    Raises: as `rows` does.
    """
    for entry in folder.entries(folder.unbroken_ranges()):
        if entry.documents:
            with folder.open(entry.documents.path) as file:
                yield from document_rows(file)
