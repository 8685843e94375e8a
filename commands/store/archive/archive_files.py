"""Reads states from the files of archives: each file is proved when it is opened, and a little of all is kept.

Needs pyarrow, from the extra `annals[segments]`.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from itertools import accumulate
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, Final, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from annals.commands.store.archive.archived_segment import ArchivedSegment
from annals.commands.store.filesystems import filesystem_at
from annals.domain.errors.http_errors import ArchiveUnavailable

V = TypeVar("V")

#: The number of files that stay open, and the bytes of decoded row groups that stay in memory.
MAX_OPEN_FILES: Final = 16
MAX_CACHED_BYTES: Final = 64 << 20
#: Seconds after a failure in which the same file is not tried again: each attempt of a client of an object store takes
#: seconds, and each reader of the past would wait for one.
RETRY_SECONDS: Final = 5.0
_READ_BYTES: Final = 1 << 20
_COLUMN: Final = "state"


class ArchiveFiles:
    """The files of archives that a process reads. Thread-safe."""

    def __init__(self, max_files: int = MAX_OPEN_FILES, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._lock = Lock()
        self._files = _Cache[_SegmentFile](max_files, lambda file: 1)
        self._groups = _Cache[list[bytes]](max_bytes, lambda states: sum(map(len, states)))
        self._failures: dict[ArchivedSegment, tuple[float, ArchiveUnavailable]] = {}
        #: The number of failed attempts to read a file.
        self.failures = 0

    def state(self, segment: ArchivedSegment, position: int) -> bytes:
        """The state of the event at a position of the segment. Raises: ArchiveUnavailable."""
        with self._failing(segment):
            file = self._open(segment)
            group, index = file.locate(position - segment.first)
            key = (segment.sha256, group)
            with self._lock:
                states = self._groups.get(key)
            if states is None:
                states = file.read_group(group)
                with self._lock:
                    self._groups.put(key, states)
            return states[index]

    def states(self, segment: ArchivedSegment) -> Iterator[tuple[int, bytes]]:
        """The states of all events of the segment with their positions, in order; nothing of it is kept.

        Raises: ArchiveUnavailable.
        """
        position = segment.first
        with self._failing(segment):
            file = self._open(segment)
            for group in range(file.groups):
                for state in file.read_group(group):
                    yield position, state
                    position += 1

    def check(self, segment: ArchivedSegment) -> None:
        """Reads the whole file and compares its hash. Raises: ArchiveUnavailable."""
        with self._failing(segment, ignore_earlier=True):
            _SegmentFile(segment).close()

    def missing(self, segments: Sequence[ArchivedSegment]) -> list[ArchivedSegment]:
        """Those segments of one archive whose files do not exist, or have another size. Cost: one listing.

        Raises: ArchiveUnavailable when the place does not respond.
        """
        with self._failing(segments[-1], ignore_earlier=True):
            filesystem, root = filesystem_at(segments[-1].place)
            sizes: dict[str, int] = {}
            for folder in sorted({segment.path.rpartition("/")[0] for segment in segments}):
                selector = fs.FileSelector(f"{root.rstrip('/')}/{folder}", allow_not_found=True)
                sizes |= {f"{folder}/{info.base_name}": info.size for info in filesystem.get_file_info(selector)}
        return [segment for segment in segments if sizes.get(segment.path) != segment.bytes]

    def _open(self, segment: ArchivedSegment) -> _SegmentFile:
        with self._lock:
            file = self._files.get((segment.place, segment.sha256))
        if file is None:
            file = _SegmentFile(segment)
            with self._lock:
                self._files.put((segment.place, segment.sha256), file)
        return file

    @contextmanager
    def _failing(self, segment: ArchivedSegment, ignore_earlier: bool = False) -> Iterator[None]:
        """Turns errors of files into ArchiveUnavailable, also for a while after the first one."""
        until, earlier_error = self._failures.get(segment, (0.0, None))
        if earlier_error is not None and not ignore_earlier and time.monotonic() < until:
            raise segment.unavailable(earlier_error.arguments["error_detail"])
        try:
            yield
        except (OSError, ValueError, IndexError, KeyError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            failure = segment.unavailable(f"{segment.path}: {reason}")
            with self._lock:
                self.failures += 1
                self._failures[segment] = time.monotonic() + RETRY_SECONDS, failure
            raise failure from error
        if earlier_error is not None:
            self._failures.pop(segment, None)


class _SegmentFile:
    """An open file of a segment whose hash is the recorded one.

    A remote file is copied to a temporary file without a name when it is opened: its hash needs all bytes once, and
    later reads of row groups then need no request.
    """

    def __init__(self, segment: ArchivedSegment) -> None:
        """Raises: OSError, ValueError."""
        filesystem, root = filesystem_at(segment.place)
        path, is_local = f"{root.rstrip('/')}/{segment.path}", filesystem.type_name == "local"
        copy = None if is_local else TemporaryFile()  # noqa: SIM115, because it lives as long as this object
        with filesystem.open_input_stream(path) as content:
            _check_content(segment, content, copy)
        self._lock = Lock()
        self._file = pq.ParquetFile(copy if copy is not None else filesystem.open_input_file(path), pre_buffer=False)
        metadata = self._file.metadata
        self.groups: int = metadata.num_row_groups
        self._ends = [*accumulate(metadata.row_group(group).num_rows for group in range(self.groups))]
        if self._ends[-1:] != [segment.last - segment.first + 1]:
            raise ValueError("it does not have the events of its positions")

    def locate(self, row: int) -> tuple[int, int]:
        """The row group of a row, and the row's index in it."""
        group = bisect_right(self._ends, row)
        return group, row - (self._ends[group - 1] if group else 0)

    def read_group(self, group: int) -> list[bytes]:
        """The states of a row group."""
        with self._lock:  # one file object has one position
            column = self._file.read_row_group(group, columns=[_COLUMN], use_threads=False).column(_COLUMN)
        # As a list, because taking one value after another out of a column takes several times as long.
        states: list[bytes] = column.cast(pa.binary()).to_pylist()
        return states

    def close(self) -> None:
        """Closes the file."""
        self._file.close(force=True)


def _check_content(segment: ArchivedSegment, content: Any, copy: IO[bytes] | None) -> None:
    """Copies the content, and compares it with the record. Raises: OSError, ValueError."""
    digest, size = sha256(), 0
    for chunk in iter(partial(content.read, _READ_BYTES), b""):
        digest.update(chunk)
        size += len(chunk)
        if copy is not None:
            copy.write(chunk)
    if (digest.hexdigest(), size) != (segment.sha256, segment.bytes):
        raise ValueError("it is not the file that was written")


class _Cache(Generic[V]):
    """The values that were used last, up to a sum of sizes."""

    def __init__(self, max_size: int, size_of: Callable[[V], int]) -> None:
        self._max_size = max_size
        self._size_of = size_of
        self._size = 0
        self._values: OrderedDict[Any, V] = OrderedDict()

    def get(self, key: Any) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Any, value: V) -> None:
        if key in self._values:
            return
        self._values[key] = value
        self._size += self._size_of(value)
        while self._size > self._max_size and len(self._values) > 1:
            _, removed_value = self._values.popitem(last=False)
            self._size -= self._size_of(removed_value)


#: The files of this process: all stores and threads share the two limits.
ARCHIVE_FILES: Final = ArchiveFiles()
