"""AMQP through a WebSocket: what goes into a socket and comes out of it around the bytes of AMQP.

Spec: RFC 6455, sections 4.1 and 5; AMQP WebSocket Binding 1.0.
"""

from __future__ import annotations

from typing import Final

from domain.subscriptions.sink_uris import SinkAddress
from projections.outgoing import websocket_frames

_PROTOCOL: Final = "amqp"
#: Bytes of a frame beyond which a peer is not listened to: it has no more to say than acknowledgements.
_MOST: Final = 1 << 20


class AmqpWebSocket:
    """is_open: whether the server has agreed to speak AMQP within."""

    def __init__(self, at: SinkAddress) -> None:
        self.is_open = False
        self._at, self._key = at, websocket_frames.new_key()
        self._unread = self._owed = b""

    def hello(self) -> bytes:
        """The request that opens the WebSocket."""
        return websocket_frames.opening_request(self._at, "/", self._key, _PROTOCOL)

    def receive(self, data: bytes) -> bytes:
        """The AMQP in what was received. Raises: ConnectionError where the server ends it or breaks its rules."""
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
        """What is to be sent for some AMQP, answers to the server's pings before it."""
        owed, self._owed = self._owed, b""
        return owed + websocket_frames.encode_frame(websocket_frames.BINARY, payload) if payload else owed

    def _has_agreed(self) -> bool:
        """Reads the answer to the request, as far as it is there."""
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
        """The kind and the payload of the next frame, once it is whole."""
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
