"""What a parser needs to read the body of a request whose head another parser has read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

_FRAMING: Final = (b"content-length", b"transfer-encoding")


class BodyReceiver(Protocol):
    """What receives the body."""

    def on_body(self, body: bytes) -> None: ...
    def on_chunk_header(self) -> None: ...
    def on_ignored_upgrade_complete(self) -> None: ...


class BodyCallbacks:
    """The callbacks of such a parser: those for the parts of a body."""

    def __init__(self, receiver: BodyReceiver) -> None:
        self.on_body = receiver.on_body
        self.on_chunk_header = receiver.on_chunk_header
        self.on_message_complete = receiver.on_ignored_upgrade_complete


def framing_head(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A head that says where the body ends, and nothing else. headers: with names in lower case."""
    lines = b"".join(b"%s: %s\r\n" % header for header in headers if header[0] in _FRAMING)
    return b"POST / HTTP/1.1\r\n%s\r\n" % lines
