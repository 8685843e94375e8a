"""Checks the size of a request head as its bytes arrive, before the parser stores them.

Rule ACC-114. RFC 9110, "414 URI Too Long"; RFC 6585, "431 Request Header Fields Too Large".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from annals.api.http.connections.connection_limits import HeadLimits
from annals.domain.errors.http_errors import HeadersTooLarge, UriTooLong
from annals.domain.errors.problems import Problem

#: The end of a head, and of a chunked body.
_HEAD_END: Final = b"\r\n\r\n"


def find_block_end(tail: bytes, data: bytes, start: int) -> int:
    """The end of the next empty line in the data from `start` on; the end of the data if there is none.

    tail: the last three bytes before `start`, which may contain the beginning of the empty line.
    """
    if tail:
        index = (tail + data[start : start + 3]).find(_HEAD_END)
        if index >= 0:
            return start + index + len(_HEAD_END) - len(tail)
    index = data.find(_HEAD_END, start)
    return index + len(_HEAD_END) if index >= 0 else len(data)


class LimitExceeded(NamedTuple):
    """A limit that a head exceeds. start: index in the piece where the line begins that exceeds it."""

    problem: Problem
    start: int


class RequestHead:
    """The received part of one head. lines: number of complete lines, including the request line."""

    __slots__ = ("_limits", "_line", "_size", "_smallest_limit", "_tail", "lines")

    def __init__(self, limits: HeadLimits) -> None:
        self._limits = limits
        #: A head of at most this size can exceed only the limit on the number of headers.
        self._smallest_limit = min(limits.request_line, limits.header, limits.headers_size)
        self.reset()

    def reset(self) -> None:
        """Begins the next head."""
        self.lines = self._line = self._size = 0
        self._tail = b""

    @property
    def has_begun(self) -> bool:
        """Whether any byte has arrived."""
        return bool(self._line or self._size or self.lines)

    def find_end(self, data: bytes, start: int) -> int:
        """The end of the head in the data from `start` on; the end of the data if the head continues."""
        return find_block_end(self._tail, data, start)

    def is_short(self, data: bytes) -> bool:
        """Whether the data is exactly one whole head within the limits, as for most requests. Cheap."""
        size = len(data)
        return (
            size <= self._smallest_limit
            and data.find(_HEAD_END) == size - len(_HEAD_END)
            and data.count(b"\n") <= self._limits.headers + 2
        )

    def add(self, piece: bytes) -> LimitExceeded | None:
        """Counts the next bytes of the head; returns the limit that they exceed, if any. Cost: O(bytes)."""
        if not self.has_begun and self.is_short(piece):
            self.lines = piece.count(b"\n") - 1
            return None
        self._tail = (self._tail + piece[-3:])[-3:]
        start = 0
        while start < len(piece):
            end = piece.find(b"\n", start) + 1
            line_length = self._line
            self._line += (end or len(piece)) - start
            if (exceeded := self._exceeded_limit(start if not line_length else 0)) is not None:
                return exceeded
            if not end:
                break
            self._end_line()
            start = end
        return None

    def _end_line(self) -> None:
        # Empty lines before a request have no meaning, but are counted, because a client may send any number of them.
        if self.lines or self._line <= 2:
            self._size += self._line
        if self.lines or self._line > 2:
            self.lines += 1
        self._line = 0

    def _exceeded_limit(self, start: int) -> LimitExceeded | None:
        """The limit that the head exceeds with its current line; None if there is none."""
        limits, line_length = self._limits, self._line - 2  # without the line ending
        if not self.lines and line_length > limits.request_line:
            return LimitExceeded(UriTooLong(max_size=limits.request_line), start)
        if self.lines and line_length > limits.header:
            return LimitExceeded(_headers_too_large(f"a header has more than {limits.header} bytes"), start)
        if self.lines > limits.headers and line_length > 0:
            return LimitExceeded(_headers_too_large(f"there are more than {limits.headers} headers"), start)
        if self._size + (self._line if self.lines else 0) > limits.headers_size:
            return LimitExceeded(
                _headers_too_large(f"the headers have more than {limits.headers_size} bytes in all"), start
            )
        return None


def _headers_too_large(reason: str) -> HeadersTooLarge:
    return HeadersTooLarge(error_detail=reason)
