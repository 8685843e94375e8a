"""Sends a response in one piece: uvicorn writes its head and its body separately.

Each write is a system call and a packet, and wakes the client: more work than a small response itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_LENGTH_HEADER: Final = b"\r\ncontent-length: "
#: Number of bytes that are sent without waiting for more.
_MAX_BUFFERED_BYTES: Final = 64 << 10


class GatheredWrites(asyncio.Transport):
    """A transport that buffers a response with a Content-Length and sends it as a whole."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._parts: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends data. A response with a length is sent when `flush` is called, or when it is large."""
        if not self._parts and not (data[:9] == b"HTTP/1.1 " and _LENGTH_HEADER in bytes(data)):
            self._transport.write(data)
            return
        self._parts.append(data)
        if len(data) >= _MAX_BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Sends the buffered data."""
        chunks, self._parts = self._parts, []
        if chunks and not self._transport.is_closing():
            self._transport.write(b"".join(chunks))

    def write_eof(self) -> None:
        """Sends the buffered data and closes the write side, which a connection with TLS cannot close alone."""
        self.flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def close(self) -> None:
        """Sends the buffered data and closes the connection."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stops reading from the client."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resumes reading."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Information about the connection."""
        return self._transport.get_extra_info(name, default)
