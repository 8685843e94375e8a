"""A folder of segments on any filesystem that pyarrow supports.

Files never change. Names of data files contain a part of their hash. Concurrent writers therefore never write different
bytes under one name, and each leaves a consistent folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import file_digest
from io import BufferedIOBase, BytesIO
from pathlib import Path
from secrets import token_hex
from shutil import copyfileobj
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pyarrow import fs

from annals.commands.store.filesystems import filesystem_at as filesystem_at  # also for Spark
from annals.projections.segments.manifest import DataFile, ManifestEntry, SegmentRange, parse_entry

_MANIFEST: Final = "manifest"
_KINDS: Final = ("log", "documents", _MANIFEST)
_PART_SUFFIX: Final = ".part"
#: Filesystems on which a file appears only when it is complete.
_OBJECT_STORES: Final = {"s3", "gcs", "abfs"}
_CONCURRENT_READS: Final = 16
MISSING_SEGMENT: Final = "the next segment is missing, while there are later ones"
_COPY_BYTES: Final = 1 << 20


class NoSegments(Exception):
    """A folder that was to be read has no segments, or does not exist."""


class MissingSegment(Exception):
    """A folder that was to be read lacks a segment, and has later ones."""

    def __init__(self, position: int) -> None:
        super().__init__(f"position {position}: {MISSING_SEGMENT}")


class ConcurrentWriteError(Exception):
    """Another process has written the same segments meanwhile."""


class SegmentSequence(NamedTuple):
    """Segments that follow each other. missing: the position after them, if there are later segments; else None."""

    ranges: list[SegmentRange]
    missing: int | None


class SegmentFolder:
    """Reads and adds segments. name: of the place, without secrets."""

    def __init__(self, filesystem: fs.FileSystem, root: str, name: str) -> None:
        self.name = name
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._writes_whole_files = filesystem.type_name in _OBJECT_STORES

    def ranges(self, after: int = 0) -> list[SegmentRange]:
        """The segments of `sequence`."""
        return self.sequence(after).ranges

    def unbroken_ranges(self) -> list[SegmentRange]:
        """The same from position 1, for a reader of the whole log.

        Raises: NoSegments, MissingSegment, so that the reader takes no part of a log for the whole; OSError.
        """
        ranges, missing = self.sequence()
        if missing:
            raise MissingSegment(missing)
        if not ranges:
            raise NoSegments(f"there are no segments at {self.name}")
        return ranges

    def sequence(self, after: int = 0) -> SegmentSequence:
        """The complete segments that follow each other after a position.

        If concurrent writers split the log differently, this is one chain that reaches farthest.
        """
        all_ranges = self.list_ranges()
        ranges = _longest_chain(all_ranges, after)
        end = ranges[-1].last if ranges else after
        return SegmentSequence(ranges, end + 1 if any(range.last > end for range in all_ranges) else None)

    def list_ranges(self) -> list[SegmentRange]:
        """Every complete segment, by position."""
        names = (info.base_name for info in self._list(_MANIFEST))
        return sorted(filter(None, (SegmentRange.parse(name) for name in names if name.endswith(".json"))))

    def entry(self, range: SegmentRange) -> ManifestEntry:
        """The manifest entry of a segment.

        Raises: UnreadableManifestEntry; OSError when it cannot be read.
        """
        path = _entry_path(range)
        with self.open(path) as file:
            return parse_entry(file.read(), path)

    def entries(self, ranges: Iterable[SegmentRange]) -> Iterator[ManifestEntry]:
        """`entry` for each range, in the same order; fetches several at a time, because each may be a request."""
        with ThreadPoolExecutor(_CONCURRENT_READS) as pool:
            yield from pool.map(self.entry, ranges)

    def open(self, path: str) -> Any:
        """A file for random-access reading."""
        return self._filesystem.open_input_file(self._path(path))

    def put(self, kind: str, range: SegmentRange, rows: int, content: BufferedIOBase) -> DataFile:
        """Adds a data file under a name that contains its hash.

        Raises: ConcurrentWriteError.
        """
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        digest = file_digest(content, "sha256").hexdigest()
        file = DataFile(path=f"{kind}/{range}-{digest[:16]}.parquet", rows=rows, bytes=size, sha256=digest)
        if self._size(file.path) != size:
            self._put(file.path, size, content)
        return file

    def add_entry(self, entry: ManifestEntry) -> None:
        """Makes a segment complete, once its files exist; an already complete one does not change."""
        path, text = _entry_path(entry.range), entry.model_dump_json(indent=1).encode()
        if self._size(path) is None:
            self._put(path, len(text), BytesIO(text))

    def remove_unfinished(self, last_position: int) -> None:
        """Removes unfinished files of killed writers, for segments that are complete by now."""
        if self._writes_whole_files:
            return
        for info in (info for kind in _KINDS for info in self._list(kind)):
            range = SegmentRange.parse(info.base_name)
            if range and info.path.endswith(_PART_SUFFIX) and range.first <= last_position:
                self._remove(info.path)

    def _put(self, path: str, size: int, content: BufferedIOBase) -> None:
        content.seek(0)
        target = self._path(path)
        if self._writes_whole_files:
            self._copy(content, target)
            return
        self._filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        partial_path = f"{target}.{token_hex(8)}{_PART_SUFFIX}"
        try:
            self._copy(content, partial_path)
            self._filesystem.move(partial_path, target)
            if self._filesystem.type_name == "local":
                _sync_names(Path(target), Path(self._root))
        except OSError as error:
            # Another writer was first, and has removed this partial file, or its file cannot be replaced.
            self._remove(partial_path)
            if self._size(path) != size:
                raise ConcurrentWriteError(path) if isinstance(error, FileNotFoundError) else error from None

    def _copy(self, content: BufferedIOBase, target: str) -> None:
        try:
            with self._filesystem.open_output_stream(target) as stream:
                copyfileobj(content, stream, _COPY_BYTES)
        except BaseException:
            self._remove(target)  # closing a broken stream creates a file
            raise
        if self._filesystem.type_name == "local":
            # The name must not survive a power cut that the bytes do not survive.
            with Path(target).open("rb+") as file:
                os.fsync(file.fileno())

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):  # another writer may remove it as well
            self._filesystem.delete_file(path)

    def _size(self, path: str) -> int | None:
        info = self._filesystem.get_file_info(self._path(path))
        size: int | None = info.size if info.type is fs.FileType.File else None
        return size

    def _list(self, kind: str) -> list[Any]:
        infos: list[Any] = self._filesystem.get_file_info(fs.FileSelector(self._path(kind), allow_not_found=True))
        return infos

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"


def open_folder(uri: str) -> SegmentFolder:
    """The folder at a path or a URI; it need not exist yet.

    Raises: ValueError for a URI without a filesystem; OSError when that does not respond.
    """
    filesystem, root = filesystem_at(uri)
    split_uri = urlsplit(uri)
    if len(split_uri.scheme) < 2:
        return SegmentFolder(filesystem, root, uri)
    return SegmentFolder(
        filesystem, root, split_uri._replace(netloc=split_uri.netloc.rpartition("@")[2], query="").geturl()
    )


def _sync_names(file: Path, root: Path) -> None:
    """Makes the names of a file and of its folders survive a power cut."""
    for folder in (file.parent, root, root.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _entry_path(range: SegmentRange) -> str:
    return f"{_MANIFEST}/{range}.json"


def _longest_chain(ranges: Iterable[SegmentRange], after: int) -> list[SegmentRange]:
    ranges_by_end: dict[int, SegmentRange] = {}
    for range in ranges:
        if range.first == after + 1 or range.first - 1 in ranges_by_end:
            ranges_by_end.setdefault(range.last, range)
    chain, end = list[SegmentRange](), max(ranges_by_end, default=after)
    while end > after:
        chain.append(ranges_by_end[end])
        end = ranges_by_end[end].first - 1
    return chain[::-1]
