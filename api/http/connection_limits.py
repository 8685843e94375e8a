"""What connections may cost, as the settings say."""

from __future__ import annotations

from typing import NamedTuple


class HeadLimits(NamedTuple):
    """Bytes of the request line and of one header, number of headers, bytes of all headers."""

    request_line: int = 16 << 10
    header: int = 16 << 10
    headers: int = 512
    headers_size: int = 128 << 10


class ConnectionLimits(NamedTuple):
    """Limits of a head, connections at the same time, and seconds that a client may take to send.

    body_rate: bytes of a body for which it has one second more than body_seconds.
    """

    head: HeadLimits = HeadLimits()
    connections: int = 1024
    header_seconds: float = 20
    body_seconds: float = 30
    body_rate: int = 1024
