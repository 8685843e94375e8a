"""Sends an HTTP request as bytes over a socket, so that no client library corrects it."""

from __future__ import annotations

import socket
from http.client import HTTPResponse
from typing import NamedTuple
from urllib.parse import urlsplit

CRLF = b"\r\n"


class Answer(NamedTuple):
    """The response. status: 0 if the server closed the connection without a response."""

    status: int
    content_type: str
    body: bytes


def request(method: str, path: str | bytes, body: bytes = b"", *headers: bytes) -> bytes:
    """The bytes of a request that is valid except for the given parts."""
    target = path.encode() if isinstance(path, str) else path
    given = [b"Host: 127.0.0.1", b"Connection: close", *headers]
    if body and not any(header.lower().startswith(b"transfer-encoding") for header in headers):
        given.append(b"Content-Length: %d" % len(body))
    return CRLF.join([b"%s %s HTTP/1.1" % (method.encode(), target), *given, b"", body])


def exchange(url: str, sent: bytes, hang_up: bool = False) -> Answer:
    """Sends bytes and returns the response. hang_up: whether the client closes its side of the connection."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.sendall(sent)
        if hang_up:
            connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection, method=sent.split(b" ", 1)[0].decode("latin-1"))
        try:
            answer.begin()
            return Answer(answer.status, answer.getheader("content-type", ""), answer.read())
        except (ConnectionError, ValueError):
            return Answer(0, "", b"")
