"""Answers that leave in one piece: uvicorn writes the head of an answer and its body apart.

Each write is a system call and a packet of its own, and the client is woken for both: more work than a small answer is.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_LENGTH: Final = b"\r\ncontent-length: "
#: Bytes that are sent without waiting for what may follow.
_ENOUGH: Final = 64 << 10


class GatheredWrites(asyncio.Transport):
    """Another transport, to which an answer that has a length goes as a whole."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._parts: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends data; an answer that has a length when `flush` is called, or when there is much of it."""
        if not self._parts and not (data[:9] == b"HTTP/1.1 " and _LENGTH in bytes(data)):
            self._transport.write(data)
            return
        self._parts.append(data)
        if len(data) >= _ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Sends what is left."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def write_eof(self) -> None:
        """Sends what is left, and that nothing follows."""
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        """Sends what is left, and ends the connection."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether the connection has ended or is about to."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Takes nothing more from the client."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads on."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection."""
        return self._transport.get_extra_info(name, default)
