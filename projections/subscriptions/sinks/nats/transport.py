"""The transports of the NATS client: an existing connection, either plain or in a WebSocket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Self

from nats.aio.transport import TcpTransport

from annals.domain.subscriptions.sink_uris import SinkAddress
from annals.projections.outgoing.client_websocket import ClientWebSocket
from annals.projections.subscriptions.transport.receive_limit import MAX_BYTES, ReceiveLimit


class NatsTransport(TcpTransport):
    """A plain connection. The client starts TLS on it after the server's greeting.

    receive_limit: counts what the client reads, which it keeps until a message is complete.
    """

    scheme = "nats"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._bare_io_reader = self._io_reader = reader
        self._bare_io_writer = self._io_writer = writer
        self.tls = tls
        self.receive_limit = ReceiveLimit()

    @classmethod
    async def open_over(cls, server_socket: socket.socket, sink_address: SinkAddress) -> Self:
        """A transport over a connected socket, which is closed on failure. Raises: OSError."""
        try:
            reader, writer = await asyncio.open_connection(sock=server_socket, limit=MAX_BYTES)
        except BaseException:
            server_socket.close()
            raise
        return cls(reader, writer, sink_address.tls)

    def abort(self) -> None:
        """Closes the connection at once and discards unwritten data."""
        for writer in (self._io_writer, self._bare_io_writer):
            if writer:
                writer.transport.abort()

    async def connect(self, *given: Any, **named: Any) -> None:
        """Does nothing: the connection exists."""

    async def read(self, buffer_size: int) -> bytes:
        return self.receive_limit.count(await super().read(buffer_size))


class NatsWebSocketTransport(NatsTransport):
    """A connection in a WebSocket. A WebSocket message may hold any part of the byte stream."""

    scheme = "ws"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: bool) -> None:
        super().__init__(reader, writer, tls)
        self._reader, self._writer = reader, writer
        self._websocket: ClientWebSocket
        self._unread = b""
        self._has_ended = False

    @classmethod
    async def open_over(cls, server_socket: socket.socket, sink_address: SinkAddress) -> Self:
        """See NatsTransport. Opens the WebSocket."""
        made = await super().open_over(server_socket, sink_address)
        try:
            made._websocket = ClientWebSocket(sink_address, "/")
            made._writer.write(made._websocket.opening_request)
            while not made._websocket.is_open:
                made._unread = made._websocket.receive(await made._reader.read(MAX_BYTES))
        except BaseException:
            made._writer.close()
            raise
        return made

    def write(self, payload: bytes) -> None:
        self._writer.write(self._websocket.encode_message(payload))

    def writelines(self, payload: list[bytes]) -> None:
        self.write(b"".join(payload))

    async def read(self, buffer_size: int) -> bytes:
        """The data of the next messages; empty at the end."""
        unread, self._unread = self._unread, b""
        return unread or await self._message()

    async def readline(self) -> bytes:
        line = self._unread
        while b"\n" not in line and len(line) < MAX_BYTES:
            if not (data := await self._message()):
                break
            line += data
        line, separator, self._unread = line.partition(b"\n")
        return line + separator

    def at_eof(self) -> bool:
        return self._has_ended

    async def _message(self) -> bytes:
        """The data of the next messages; empty at the end of the stream. Raises: ConnectionError."""
        data = b""
        while not data and not self._websocket.is_closed and (received := await self._reader.read(MAX_BYTES)):
            data = self._websocket.receive(self.receive_limit.count(received))
            if pongs := self._websocket.encode_message():
                self._writer.write(pongs)
        self._has_ended = not data
        return data
