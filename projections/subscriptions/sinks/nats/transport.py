"""What the NATS client reads from and writes to: a connection that is made already, bare or in a WebSocket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from nats.aio.transport import TcpTransport

from domain.subscriptions.sink_uris import SinkAddress
from projections.outgoing import websocket_frames

#: Bytes of a line, or of a message over a WebSocket, at most; servers send little to who only publishes.
_MOST = 1 << 20


class NatsTransport(TcpTransport):
    """A bare connection. The client puts TLS over it when the server has introduced itself."""

    scheme = "nats"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._bare_io_reader = self._io_reader = reader
        self._bare_io_writer = self._io_writer = writer
        self.tls = tls

    @classmethod
    async def over(cls, connection: socket.socket, at: SinkAddress) -> NatsTransport:
        """Over a connected socket, which is closed on failure. Raises: OSError."""
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=_MOST)
        except BaseException:
            connection.close()
            raise
        return cls(reader, writer, at.tls)

    def abort(self) -> None:
        """Lets go of the connection at once, whatever is still to be written or waited for."""
        for writer in (self._io_writer, self._bare_io_writer):
            if writer:
                writer.transport.abort()

    async def connect(self, *given: Any, **named: Any) -> None:
        """Nothing: it is connected."""


class NatsWebSocketTransport(NatsTransport):
    """A connection inside a WebSocket; a message of it may hold any part of what is said."""

    scheme = "ws"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: bool) -> None:
        super().__init__(reader, writer, tls)
        self._reader, self._writer = reader, writer
        self._left = b""
        self._ended = False

    @classmethod
    async def over(cls, connection: socket.socket, at: SinkAddress) -> NatsWebSocketTransport:
        """Over a connected socket, which is closed on failure. Raises: OSError."""
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
        """What the next message says; empty at the end."""
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
        """The data of the next frame that has any; empty when there is none any more. Raises: ConnectionError."""
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
