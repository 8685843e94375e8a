"""Headers for content that clients stored: documents never run on the server's origin, URLs never lead to scripts.

Rules ACC-102 to ACC-104, LEG-525, LEG-1106. W3C, "Content Security Policy Level 3".
"""

from __future__ import annotations

import re
from typing import Final

from annals.api.http.request import Request
from annals.api.http.response import Headers
from annals.domain.errors.http_errors import ForbiddenDestination
from annals.domain.values.header_values import encode_text

#: Header of every stored document: its scripts do not run, and it has no origin.
SANDBOX_POLICY: Final = (b"content-security-policy", b"sandbox; default-src 'none'")
ATTACHMENT: Final = (b"content-disposition", b"attachment")

#: Media types that browsers show as pages, in addition to all types that end in `+xml`.
_PAGE_TYPES: Final = frozenset(("text/html", "text/xml", "application/xml"))
#: Request destinations for which browsers use a response as part of a page, with the rights of the page.
_DESTINATIONS: Final = frozenset(("script", "style", "worker", "sharedworker", "serviceworker", "object", "embed"))
#: The first segments of the files of the server's own pages.
OWN_FILES: Final = ("ui", "static")
#: URL schemes whose URL is itself content that runs when a browser opens it.
_SCRIPT_SCHEMES: Final = frozenset(("javascript", "vbscript", "data", "blob", "filesystem", "view-source"))
#: Characters that browsers ignore before and within the scheme of a URL.
_IGNORED_CHARACTERS: Final = re.compile(r"[\x00-\x20\x7f-\xa0]+")


def attachment_headers(contenttype: str | None) -> Headers:
    """The header that makes a browser save a document instead of showing it; only for pages."""
    type = (contenttype or "").partition(";")[0].strip().lower()
    return [ATTACHMENT] if type in _PAGE_TYPES or type.endswith("+xml") else []


def location_headers(url: str) -> Headers:
    """The Location header for a stored URL; none for a URL that is a script."""
    scheme = _IGNORED_CHARACTERS.sub("", url).partition(":")[0].lower()
    return [] if scheme in _SCRIPT_SCHEMES else [(b"location", encode_text(url).encode())]


def check_destination(request: Request) -> None:
    """Checks the destination of a request. Raises: ForbiddenDestination if a page would run or embed the response."""
    if request.segments[:2] == OWN_FILES:
        return
    destination = (request.header(b"sec-fetch-dest") or "").strip().lower()
    if destination in _DESTINATIONS:
        raise ForbiddenDestination(destination=destination)
