"""The links of answers about the past: they lead to the same moment, one of them to the present.

All URLs of entities and collections do, in bodies and headers; xids, short URLs and the registry's root do not.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote_plus

from api.http.request import Request

#: What ends a URL in a Link header, or cannot be in one.
_REFERENCE: Final = str.maketrans({each: quote(each) for each in '<>" '})


def asof_suffix(asof: str | None) -> str:
    """What a link of an answer about the past ends with: `?asof=...`, empty for the present."""
    # A plus sign that was not escaped came in as a space, of which only the one before the time of day may be meant.
    return "" if asof is None else f"?asof={quote(asof[:11] + asof[11:].replace(' ', '+'), safe=':')}"


def with_asof(url: str, parameter: str) -> str:
    """A URL that leads into the same moment. parameter: see the function of that name."""
    return f"{url}&{parameter[1:]}" if parameter and "?" in url else url + parameter


def url_without_asof(request: Request) -> str:
    """The URL that a request about the past would have for the present."""
    parts = (part for part in request.query.decode("latin-1").split("&") if part)
    query = "&".join(part for part in parts if unquote_plus(part.partition("=")[0]) != "asof")
    return escape_link_url(f"{request.base}{request.raw or '/'}{'?' if query else ''}{query}")


def escape_link_url(url: str) -> str:
    """A URL for a Link header, in which a client may have sent what ends it there as it is."""
    return url.translate(_REFERENCE)
