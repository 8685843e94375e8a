"""The transports of the NATS client: an existing connection, either plain or in a WebSocket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from nats.aio.transport import TcpTransport

from domain.subscriptions.sink_uris import SinkAddress
from projections.outgoing import websocket_frames

#: Largest size in bytes of a line, or of a WebSocket message. Servers send little to a client that only publishes.
_MOST = 1 << 20


class NatsTransport(TcpTransport):
    """A plain connection. The client starts TLS on it after the server's greeting."""

    scheme = "nats"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._bare_io_reader = self._io_reader = reader
        self._bare_io_writer = self._io_writer = writer
        self.tls = tls

    @classmethod
    async def over(cls, connection: socket.socket, at: SinkAddress) -> NatsTransport:
        """A transport over a connected socket, which is closed on failure. Raises: OSError."""
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=_MOST)
        except BaseException:
            connection.close()
            raise
        return cls(reader, writer, at.tls)

    def abort(self) -> None:
        """Closes the connection at once and discards unwritten data."""
        for writer in (self._io_writer, self._bare_io_writer):
            if writer:
                writer.transport.abort()

    async def connect(self, *given: Any, **named: Any) -> None:
        """Does nothing: the connection exists."""


class NatsWebSocketTransport(NatsTransport):
    """A connection in a WebSocket. A WebSocket message may hold any part of the byte stream."""

    scheme = "ws"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: bool) -> None:
        super().__init__(reader, writer, tls)
        self._reader, self._writer = reader, writer
        self._left = b""
        self._ended = False

    @classmethod
    async def over(cls, connection: socket.socket, at: SinkAddress) -> NatsWebSocketTransport:
        """A transport over a connected socket, which is closed on failure. Raises: OSError."""
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=_MOST)
        except BaseException:
            connection.close()
            raise
        try:
            key = websocket_frames.new_key()
            writer.write(websocket_frames.opening_request(at, "/", key))
            head = await reader.readuntil(b"\r\n\r\n")
            websocket_frames.check_opening_response(head[:-4], key)
        except BaseException as error:
            writer.close()
            if isinstance(error, asyncio.IncompleteReadError | asyncio.LimitOverrunError):
                raise ConnectionError("no WebSocket") from None
            raise
        return cls(reader, writer, at.tls)

    def write(self, payload: bytes) -> None:
        self._writer.write(websocket_frames.encode_frame(websocket_frames.BINARY, payload))

    def writelines(self, payload: list[bytes]) -> None:
        self.write(b"".join(payload))

    async def read(self, buffer_size: int) -> bytes:
        """The data of the next message; empty at the end."""
        left, self._left = self._left, b""
        return left or await self._message()

    async def readline(self) -> bytes:
        line = self._left
        while b"\n" not in line and len(line) < _MOST:
            if not (more := await self._message()):
                break
            line += more
        line, separator, self._left = line.partition(b"\n")
        return line + separator

    def at_eof(self) -> bool:
        return self._ended

    async def _message(self) -> bytes:
        """The data of the next non-empty frame; empty at the end of the stream. Raises: ConnectionError."""
        try:
            while True:
                kind, data = await self._frame()
                if kind == websocket_frames.PING:
                    self._writer.write(websocket_frames.encode_frame(websocket_frames.PONG, data))
                elif kind == websocket_frames.CLOSE:
                    break
                elif kind in (websocket_frames.BINARY, websocket_frames.CONTINUATION) and data:
                    return data
        except asyncio.IncompleteReadError:
            pass
        self._ended = True
        return b""

    async def _frame(self) -> tuple[int, bytes]:
        first, second = await self._reader.readexactly(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
        if second & 0x80 or size > _MOST:
            raise ConnectionError("no frame of a server")
        return first & 0x0F, await self._reader.readexactly(size)
