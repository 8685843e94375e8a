"""The standard streams of the process, which may be closed or full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper, UnsupportedOperation
from typing import TYPE_CHECKING, TextIO

from annals.api.cli.outcome import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def open_missing_streams() -> None:
    """Replaces standard streams that are closed by the null device.

    Each gets its own descriptor again, because the system gives the lowest free one. Otherwise the next opened file
    would get it, such as the database, and a library that prints would overwrite this file.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, _open_null_device(flags))


def discard_stderr() -> None:
    """Lets the process end without another attempt to write the rest of stderr."""
    sys.stderr = _open_null_device(os.O_WRONLY)


@contextmanager
def writing_stdout() -> Iterator[None]:
    """In this block, an error of stdout differs from errors of other files. Its end writes what is still in the buffer.

    Raises: UsageError if stdout cannot be written, as on a full disk; BrokenPipeError.
    """
    original, file = sys.stdout, _checked_file(sys.stdout)
    if file is not None:
        sys.stdout = _stream_of(file, like=original)
    try:
        yield
        sys.stdout.flush()
    except BaseException:
        with suppress(OSError, UsageError):  # the first error is the one to report
            sys.stdout.flush()
        raise
    finally:
        if file is not None:
            file.discards = True  # what the other stream could not write; it tries once more when it is collected
        sys.stdout = original


class _CheckedFile(FileIO):
    """A file that ends the verb with one line if it cannot be written. discards: whether it drops what is written."""

    discards = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self.discards:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            raise  # the reader of the pipe has closed it
        except OSError as error:
            raise UsageError(f"cannot write to stdout: {error.strerror or error}.") from None


def _checked_file(stream: TextIO) -> _CheckedFile | None:
    """The file of a stream; None if it has none."""
    if not isinstance(stream, TextIOWrapper):
        return None
    try:
        return _CheckedFile(stream.fileno(), "w", closefd=False)
    except UnsupportedOperation:
        return None


def _stream_of(file: _CheckedFile, *, like: TextIO) -> TextIO:
    """A stream that writes to a file as another one does."""
    assert isinstance(like, TextIOWrapper), "others have no file"
    is_unbuffered = like.line_buffering or like.write_through
    return TextIOWrapper(BufferedWriter(file), like.encoding, like.errors, line_buffering=is_unbuffered)


def _open_null_device(flags: int) -> TextIO:
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, True)  # as standard streams are
    return os.fdopen(descriptor, "r" if flags == os.O_RDONLY else "w", encoding="utf-8")
