"""The Link header that leads from one page of a list to the next."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from annals.api.http.asof import escape_link_url
from annals.api.http.query_params import query_without
from annals.api.http.request import Request
from annals.domain.values import xid as xids

AFTER: Final = "after"


def next_link(request: Request, after: str) -> tuple[bytes, bytes]:
    """The URL of a request with another `after`, as a link to the next page."""
    query = "&".join(filter(None, (query_without(request, AFTER), f"{AFTER}={quote(after, safe='')}")))
    path = quote(xids.join(*request.segments), safe="/:@$~!*'(),;=&+")
    return b"link", f"<{escape_link_url(f'{request.base}{path}?{query}')}>;rel=next".encode("latin-1")
