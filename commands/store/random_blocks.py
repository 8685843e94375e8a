"""Random bytes, read in blocks."""

from __future__ import annotations

import os
from typing import Final

_BLOCK_SIZE: Final = 4096


class RandomBlocks:
    """Random bytes that cannot be guessed, for one thread at a time.

    The system is asked for blocks of them: each system call lets other threads run before it returns, while this thread
    holds the write lock.
    """

    def __init__(self) -> None:
        self._block = b""
        self._start = 0

    def take(self, size: int) -> bytes:
        """So many bytes, at most 4096, that nothing else has received."""
        start, end = self._start, self._start + size
        if end > len(self._block):
            self._block, start, end = os.urandom(_BLOCK_SIZE), 0, size
        self._start = end
        return self._block[start:end]

    def integer(self, bits: int) -> int:
        """A number with at most so many bits, a multiple of eight."""
        return int.from_bytes(self.take(bits // 8))
