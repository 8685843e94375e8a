"""A client's end of a WebSocket, without I/O: the bytes to send, and the data in received bytes.

Spec: RFC 6455, which wsproto implements. Its HTTP parser limits the head of a response to 16 KiB.
"""

from __future__ import annotations

from typing import Final

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Pong, Request
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits
from wsproto.handshake import H11Handshake
from wsproto.utilities import ProtocolError

from annals.domain.subscriptions.sink_uris import SinkAddress

#: Largest accepted frame in bytes. A server sends little but acknowledgements.
_MAX_FRAME_BYTES: Final = 1 << 20


class ClientWebSocket:
    """One WebSocket. opening_request: the first bytes to send. is_open: whether the server has agreed."""

    def __init__(self, at: SinkAddress, path: str, protocol: str = "", strict: bool = False) -> None:
        """path: used if the URI has none. protocol: the subprotocol. strict: whether the server has to name it.

        Raises: ConnectionError for a host name that is too long.
        """
        ((host, port),) = at.servers
        shown = f"[{host}]" if ":" in host else host
        target = (at.path or path) + (f"?{at.query}" if at.query else "")
        request = Request(f"{shown}:{port}", target, subprotocols=[protocol] if protocol else [])
        self.is_open = False
        self._required_protocol = protocol if strict else ""
        self._handshake = H11Handshake(ConnectionType.CLIENT)
        self._frames = Connection(ConnectionType.CLIENT, [_FrameLimit()])
        self._head = self._pongs = b""
        try:
            self.opening_request = self._handshake.send(request)
        except ValueError:
            raise ConnectionError("no host name") from None

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the WebSocket."""
        return self._frames.state is not ConnectionState.OPEN

    def receive(self, data: bytes) -> bytes:
        """The data of binary messages in received bytes. data: empty when the connection has ended.

        Raises: ConnectionError when the server does not agree, or breaks the protocol.
        """
        self._frames.receive_data(data if self.is_open else self._read_response(data))
        received = bytearray()
        for event in self._frames.events():
            if isinstance(event, BytesMessage):
                received += event.data
            elif isinstance(event, Ping):
                self._pongs += self._frames.send(event.response())
            elif isinstance(event, CloseConnection) and not self.is_closed:
                # wsproto reports a broken protocol like a close, but without a change of state.
                raise ConnectionError(event.reason)
            elif not isinstance(event, CloseConnection | Pong):
                raise ConnectionError("no binary message")
        return bytes(received)

    def encode_message(self, payload: bytes = b"") -> bytes:
        """The pending answers to pings, then the message. A message after the server's close is left out."""
        pongs, self._pongs = self._pongs, b""
        return pongs + self._frames.send(BytesMessage(payload)) if payload and not self.is_closed else pongs

    def _read_response(self, data: bytes) -> bytes:
        """The bytes after the head of the server's response, once it is complete."""
        self._head += data
        try:
            self._handshake.receive_data(data)
        except (ProtocolError, ValueError):  # ValueError: fields that are not ASCII
            raise ConnectionError("no WebSocket") from None
        for event in self._handshake.events():
            if not isinstance(event, AcceptConnection):
                raise ConnectionError("no WebSocket")
            if self._required_protocol and event.subprotocol != self._required_protocol:
                raise ConnectionError(f"a WebSocket without {self._required_protocol}")
            self.is_open = True
            return self._head.partition(b"\r\n\r\n")[2]
        return b""


class _FrameLimit(Extension):
    """Refuses large frames. It is never offered to the server: only extensions can read the headers of frames."""

    def enabled(self) -> bool:
        return True

    def offer(self) -> bool:
        return False

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        too_large = payload_length > _MAX_FRAME_BYTES
        return CloseReason.MESSAGE_TOO_BIG if too_large else RsvBits(False, False, False)
