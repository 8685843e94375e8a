"""The WebSocket framing around AMQP bytes, without I/O.

Spec: RFC 6455, sections 4.1 and 5; AMQP WebSocket Binding 1.0.
"""

from __future__ import annotations

from typing import Final

from domain.subscriptions.sink_uris import SinkAddress
from projections.outgoing import websocket_frames

_PROTOCOL: Final = "amqp"
#: Largest accepted frame in bytes. A peer sends little but acknowledgements.
_MOST: Final = 1 << 20


class AmqpWebSocket:
    """The framing of one WebSocket. is_open: whether the server has agreed to the AMQP subprotocol."""

    def __init__(self, at: SinkAddress) -> None:
        self.is_open = False
        self._at, self._key = at, websocket_frames.new_key()
        self._unread = self._owed = b""

    def hello(self) -> bytes:
        """The request that opens the WebSocket."""
        return websocket_frames.opening_request(self._at, "/", self._key, _PROTOCOL)

    def receive(self, data: bytes) -> bytes:
        """The AMQP bytes in received data. Raises: ConnectionError when the server closes or breaks the protocol."""
        self._unread += data
        if not self.is_open and not self._has_agreed():
            return b""
        said = bytearray()
        while (frame := self._frame()) is not None:
            kind, payload = frame
            if kind in (websocket_frames.BINARY, websocket_frames.CONTINUATION):
                said += payload
            elif kind == websocket_frames.PING:
                self._owed += websocket_frames.encode_frame(websocket_frames.PONG, payload)
            elif kind != websocket_frames.PONG:
                raise ConnectionError("closed" if kind == websocket_frames.CLOSE else "not AMQP")
        return bytes(said)

    def frame(self, payload: bytes = b"") -> bytes:
        """The bytes to send for some AMQP bytes, after the pending answers to pings."""
        owed, self._owed = self._owed, b""
        return owed + websocket_frames.encode_frame(websocket_frames.BINARY, payload) if payload else owed

    def _has_agreed(self) -> bool:
        """Whether the response head is complete. Raises: ConnectionError if the server does not agree."""
        head, end, rest = self._unread.partition(b"\r\n\r\n")
        if not end:
            if len(self._unread) > websocket_frames.MAX_RESPONSE_HEAD_BYTES:
                raise ConnectionError("no WebSocket")
            return False
        websocket_frames.check_opening_response(head, self._key)
        if not any(_speaks_amqp(line) for line in head.split(b"\r\n")):
            raise ConnectionError("a WebSocket without AMQP")
        self._unread, self.is_open = rest, True
        return True

    def _frame(self) -> tuple[int, bytes] | None:
        """The opcode and the payload of the next frame; None until it is complete."""
        have = self._unread
        if len(have) < 2:
            return None
        if have[0] & 0x70 or have[1] & 0x80:
            raise ConnectionError("a frame that was not agreed on")
        size, start = have[1], 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(have) < start:
                return None
            size = int.from_bytes(have[2:start], "big")
        if size > _MOST:
            raise ConnectionError("a frame that is too large")
        if len(have) < start + size:
            return None
        self._unread = have[start + size :]
        return have[0] & 0x0F, have[start : start + size]


def _speaks_amqp(line: bytes) -> bool:
    name, _, value = line.partition(b":")
    return name.strip().lower() == b"sec-websocket-protocol" and value.strip().lower() == _PROTOCOL.encode()
