"""Verifies that a folder's files match its manifest, and that the manifest is consistent, without reading rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Final

from annals.commands.store.hashes import EMPTY_HASH
from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.segments.folder import SegmentFolder
from annals.projections.segments.manifest import DataFile, ManifestEntry, SegmentRange

#: The number of bytes read together.
_READ_BYTES: Final = 1 << 20
BROKEN_CHAIN: Final = "the segment does not go on from the one before it"


def verify_manifest(entries: Sequence[tuple[SegmentRange, ManifestEntry]]) -> Iterator[VerificationFinding]:
    """Entries that do not follow each other. entries: each with the range in its name."""
    chain = EMPTY_HASH.hex()
    for range, entry in entries:
        if entry.range != range or entry.previous != chain:
            yield VerificationFinding(range.first, BROKEN_CHAIN)
        chain = entry.chain


def verify_file(folder: SegmentFolder, range: SegmentRange, file: DataFile) -> VerificationFinding | None:
    """A finding if a segment's file cannot be read, or has other bytes than were written."""
    digest, size = sha256(), 0
    try:
        with folder.open(file.path) as content:
            for chunk in iter(partial(content.read, _READ_BYTES), b""):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        return VerificationFinding(range.first, f"{file.path} cannot be read: {str(error).partition(chr(10))[0]}")
    return _compare_file(range, file, digest.hexdigest(), size)


def compare_files(
    entries: Sequence[tuple[SegmentRange, ManifestEntry]], found: Mapping[str, tuple[str, int]]
) -> Iterator[VerificationFinding]:
    """A finding for each file of events that is missing, or has other bytes than were written.

    found: the SHA-256 and the size of each file by its name, without the folder.
    """
    for range, entry in entries:
        if (file := found.get(entry.log.path.rpartition("/")[2])) is None:
            yield VerificationFinding(range.first, f"{entry.log.path} cannot be read: there is no such file")
        elif finding := _compare_file(range, entry.log, *file):
            yield finding


def _compare_file(range: SegmentRange, file: DataFile, digest: str, size: int) -> VerificationFinding | None:
    """A finding if a segment's file has another SHA-256 or another size than was written."""
    if (digest, size) != (file.sha256, file.bytes):
        return VerificationFinding(range.first, f"{file.path} is not the file that was written")
    return None
