"""Whether the files of a folder are those that its manifest names, and the manifest is of one piece: no row is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Final

from commands.proof import NOTHING
from commands.verify import Finding
from projections.segments.entries import Entry, File, Range
from projections.segments.folder import Folder

#: Bytes that are read together.
_READ: Final = 1 << 20
#: Files that are read at the same time.
_TOGETHER: Final = 4

MISSING: Final = "the next segment is missing, while there are later ones"
UNCONNECTED: Final = "the segment does not go on from the one before it"


def intact_logs(folder: Folder, entries: Sequence[tuple[Range, Entry]]) -> Iterator[Finding]:
    """Everything that is wrong with a folder's manifest, or with the files of events that it names.

    entries: of the complete segments, each with the range that its name says. Reads all bytes of these files once, a
    few files at a time and in bounded memory.
    Raises: OSError for a folder that cannot be listed.
    """
    yield from _connected(entries)
    if finding := missing(folder, entries[-1][0].last if entries else 0):
        yield finding
    with ThreadPoolExecutor(_TOGETHER) as pool:
        each = ((range, entry.log) for range, entry in entries)
        yield from filter(None, pool.map(lambda found: file_finding(folder, *found), each))


def missing(folder: Folder, end: int) -> Finding | None:
    """That there are segments beyond the end of those that follow each other."""
    return Finding(end + 1, MISSING) if any(range.last > end for range in folder.listed()) else None


def file_finding(folder: Folder, range: Range, file: File) -> Finding | None:
    """What is wrong with a segment's file as such: it cannot be read, or has other bytes than were written."""
    digest, size = sha256(), 0
    try:
        with folder.open(file.path) as content:
            for part in iter(partial(content.read, _READ), b""):
                digest.update(part)
                size += len(part)
    except OSError as error:
        return Finding(range.first, f"{file.path} cannot be read: {str(error).partition(chr(10))[0]}")
    if (digest.hexdigest(), size) != (file.sha256, file.bytes):
        return Finding(range.first, f"{file.path} is not the file that was written")
    return None


def _connected(entries: Iterable[tuple[Range, Entry]]) -> Iterator[Finding]:
    chain = NOTHING.hex()
    for range, entry in entries:
        if entry.range != range or entry.previous != chain:
            yield Finding(range.first, UNCONNECTED)
        chain = entry.chain
