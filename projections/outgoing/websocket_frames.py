"""The opening handshake of a WebSocket client, and the frames that it sends and reads, as bytes.

Spec: RFC 6455, sections 4.1 and 5.2.
"""

from __future__ import annotations

import os
from base64 import b64encode
from hashlib import sha1
from typing import Final

from domain.subscriptions.sink_uris import SinkAddress

CONTINUATION: Final = 0
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

#: The maximum bytes read of a server's response to the handshake.
MAX_RESPONSE_HEAD_BYTES: Final = 16_384
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def new_key() -> bytes:
    """A random key; the server's response must prove that it has read it."""
    return b64encode(os.urandom(16))


def opening_request(at: SinkAddress, path: str, key: bytes, protocol: str = "") -> bytes:
    """The request that opens a WebSocket. path: used if the URI has none. protocol: the subprotocol."""
    ((host, port),) = at.servers
    shown = f"[{host}]" if ":" in host else host
    query = f"?{at.query}" if at.query else ""
    lines = [
        f"GET {at.path or path}{query} HTTP/1.1",
        f"Host: {shown}:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key.decode()}",
        "Sec-WebSocket-Version: 13",
        *([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def check_opening_response(head: bytes, key: bytes) -> None:
    """Checks the head of a server's response to the handshake, up to its empty line.

    Raises: ConnectionError when it does not open a WebSocket.
    """
    status, *lines = head.split(b"\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    proof = b64encode(sha1(key + _GUID, usedforsecurity=False).digest())
    if status.split(b" ")[1:2] != [b"101"] or fields.get(b"sec-websocket-accept") != proof:
        raise ConnectionError("no WebSocket")


def encode_frame(kind: int, data: bytes) -> bytes:
    """A whole message as one frame, masked as required for clients."""
    size = len(data)
    if size < 126:
        length = bytes((0x80 | size,))
    elif size < 65_536:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    mask = os.urandom(4)
    return bytes((0x80 | kind,)) + length + mask + mask_data(data, mask)


def mask_data(data: bytes, mask: bytes) -> bytes:
    """Data XORed with a mask; as one long number, because a loop over bytes is a hundred times slower."""
    size = len(data)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")
