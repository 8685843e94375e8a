"""Sends a browser on to another page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from annals.api.http.response import Headers, Response

NO_STORE: Final = (b"cache-control", b"no-store")


def redirect(location: str, headers: Iterable[tuple[bytes, bytes]] = (), status: int = 303) -> Response:
    """The response that sends a browser on. location: a path with the root's, or a URL."""
    all_headers: Headers = [(b"location", location.encode()), NO_STORE, *headers]
    return Response(status, all_headers)
