"""Limits for connections, from the settings."""

from __future__ import annotations

from typing import NamedTuple


class HeadLimits(NamedTuple):
    """Maximum bytes of the request line and of one header, number of headers, and bytes of all headers."""

    request_line: int = 16 << 10
    header: int = 16 << 10
    headers: int = 512
    headers_size: int = 128 << 10


class ConnectionLimits(NamedTuple):
    """Limits of a request head, number of concurrent connections, and seconds in which a client has to send.

    body_rate: number of body bytes that extend body_seconds by one second.
    """

    head: HeadLimits = HeadLimits()
    connections: int = 1024
    header_seconds: float = 20
    body_seconds: float = 30
    body_rate: int = 1024
