"""URLs in responses about the past: they keep the moment of the request, except one link to the present.

All URLs of entities and collections in bodies and headers do so; xids, short URLs and the registry's root do not.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from annals.api.http.query_params import query_without
from annals.api.http.request import Request

#: Characters that end a URL in a Link header or are not allowed in it.
_URL_ESCAPES: Final = str.maketrans({each: quote(each) for each in '<>" '})


def asof_suffix(asof: str | None) -> str:
    """The suffix of URLs in a response about the past: `?asof=...`; empty for the present."""
    # A plus sign that was not escaped is decoded as a space. Only a space before the time of day may be meant as one.
    return "" if asof is None else f"?asof={quote(asof[:11] + asof[11:].replace(' ', '+'), safe=':')}"


def with_asof(url: str, parameter: str) -> str:
    """A URL with the moment added. parameter: as `asof_suffix` returns it."""
    return f"{url}&{parameter[1:]}" if parameter and "?" in url else url + parameter


def url_without_asof(request: Request) -> str:
    """The URL of the same request for the present."""
    query = query_without(request, "asof")
    return escape_link_url(f"{request.base}{request.raw_path or '/'}{'?' if query else ''}{query}")


def escape_link_url(url: str) -> str:
    """A URL for a Link header, with the characters escaped that would end it there."""
    return url.translate(_URL_ESCAPES)
