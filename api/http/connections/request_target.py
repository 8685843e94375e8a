"""Request targets in absolute form, as clients send them to proxies (RFC 9112, "Request Target")."""

from __future__ import annotations

from collections.abc import Sequence

import httptools


def origin_form(target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, Sequence[tuple[bytes, bytes]]]:
    """An absolute target as path and query, and the headers with its authority in Host; others as they are.

    The authority replaces the value of each Host header, and adds none, because a request needs exactly one.
    Raises: httptools.HttpParserInvalidURLError.
    """
    if target.startswith(b"/"):
        return target, headers
    url = httptools.parse_url(target)
    if url.host is None:  # `*`
        return target, headers
    host = b"[%b]" % url.host if b":" in url.host else url.host
    authority = host if url.port is None else b"%b:%d" % (host, url.port)
    path_and_query = b"%b?%b" % (url.path or b"/", url.query or b"")
    return path_and_query, [(name, authority if name == b"host" else value) for name, value in headers]
