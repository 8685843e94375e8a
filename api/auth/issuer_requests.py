"""Requests to issuers and providers of tokens, each within the same bounds (ACC-27)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from annals.projections.outgoing.resolver import Resolver

if TYPE_CHECKING:
    from annals.projections.outgoing.http_client import HttpResponse

#: Seconds for a whole request, and maximum bytes of the answer's body.
FETCH_SECONDS: Final = 5.0
MAX_BYTES: Final = 256 * 1024


async def send(
    url: str,
    resolver: Resolver,
    method: str,
    headers: Iterable[tuple[str, str]] = (),
    content: bytes | None = None,
    accept: str = "application/json",
) -> HttpResponse:
    """The complete answer, whatever its status; redirects are not followed. Raises: RequestFailed, ValueError."""
    from annals.projections.outgoing.http_client import USER_AGENT, HttpClient  # most servers read no URL

    client = HttpClient(url, resolver, has_secrets=True, max_body_bytes=MAX_BYTES)
    try:
        all_headers = (("User-Agent", USER_AGENT), ("Accept", accept), *headers)
        response = await client.request(method, all_headers, content, FETCH_SECONDS)
    finally:
        await client.close()
    if not response.is_complete:
        raise ValueError(f"the answer breaks off, or has more than {MAX_BYTES} bytes")
    return response
