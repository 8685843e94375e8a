"""A limit for what a sink sends back.

A sink answers each message with little. One that sends much more would fill the memory, and keep the event loop from
other subscriptions. Rules SUB-806 and SUB-823.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

#: Bytes that a connection may receive before its first message, bytes for the answer to each message, and bytes for the
#: heartbeats of a second.
MAX_BYTES: Final = 32 << 10
_ANSWER_BYTES: Final = 4 << 10
_HEARTBEAT_BYTES: Final = 16


class ReceiveLimit:
    """The number of bytes that one connection may still receive."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted_at = clock()
        self._remaining: float = MAX_BYTES

    def expect_answer(self) -> None:
        """Allows for the answer to a message."""
        self._allow(_ANSWER_BYTES)

    def count(self, data: bytes) -> bytes:
        """Received data. Raises: ConnectionError if the sink has sent too much."""
        now = self._clock()
        self._allow((now - self._counted_at) * _HEARTBEAT_BYTES)
        self._counted_at = now
        self._remaining -= len(data)
        if self._remaining < 0:
            raise ConnectionError("the sink sends more than answers")
        return data

    def _allow(self, size: float) -> None:
        self._remaining = min(self._remaining + size, MAX_BYTES)
