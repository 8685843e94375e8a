"""Splits a stream of received chunks into lines."""

from __future__ import annotations


class LineBuffer:
    """The line that is not complete yet. A line takes time in proportion to its length, in however many chunks."""

    def __init__(self) -> None:
        self._incomplete = bytearray()

    def __len__(self) -> int:
        return len(self._incomplete)

    def add(self, chunk: bytes) -> list[bytes]:
        """The lines that a chunk completes, without their line feeds."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = bytes(self._incomplete + complete[0])
            self._incomplete.clear()
        self._incomplete += rest
        return complete

    def end(self) -> bytes:
        """What follows the last line feed."""
        return bytes(self._incomplete)
