"""A limit for what a sink sends back.

A sink answers each message with little. One that sends much more would fill the memory, and keep the event loop from
other subscriptions. Rules SUB-806 and SUB-823.
"""

from __future__ import annotations

from typing import Final

#: Bytes that a connection may receive before its first message, and bytes for the answer to each message.
MAX_BYTES: Final = 32 << 10
_ANSWER_BYTES: Final = 4 << 10


class ReceiveLimit:
    """The number of bytes that one connection may still receive."""

    def __init__(self) -> None:
        self._remaining = MAX_BYTES

    def expect_answer(self) -> None:
        """Allows for the answer to a message."""
        self._remaining = min(self._remaining + _ANSWER_BYTES, MAX_BYTES)

    def count(self, data: bytes) -> bytes:
        """Received data. Raises: ConnectionError if the sink has sent too much."""
        self._remaining -= len(data)
        if self._remaining < 0:
            raise ConnectionError("the sink sends more than answers")
        return data
