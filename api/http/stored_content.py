"""What clients have stored, on its way out: no document runs on the server's origin, and no URL leads into a script.

Rules ACC-102 to ACC-104, LEG-525, LEG-1106. W3C, "Content Security Policy Level 3".
"""

from __future__ import annotations

import re
from typing import Final

from api.http.request import Request
from api.http.response import Headers
from domain.errors.http_errors import ForbiddenDestination
from domain.values.header_values import encode_text

#: Every stored document has it: no script of it runs, and it is of no origin.
SANDBOX_POLICY: Final = (b"content-security-policy", b"sandbox; default-src 'none'")
ATTACHMENT: Final = (b"content-disposition", b"attachment")

#: Media types that browsers show as pages, besides all that end as XML does.
_PAGES: Final = frozenset(("text/html", "text/xml", "application/xml"))
#: Where browsers use what they get as a part of a page, with the rights of the page.
_DESTINATIONS: Final = frozenset(("script", "style", "worker", "sharedworker", "serviceworker", "object", "embed"))
#: Schemes of URLs that are content themselves, which runs where they lead.
_SCRIPTS: Final = frozenset(("javascript", "vbscript", "data", "blob", "filesystem", "view-source"))
#: What browsers pass over before and within the scheme of a URL.
_IGNORED: Final = re.compile(r"[\x00-\x20\x7f-\xa0]+")


def attachment_headers(contenttype: str | None) -> Headers:
    """The header that has a browser save a document instead of showing it, for those that are pages."""
    type = (contenttype or "").partition(";")[0].strip().lower()
    return [ATTACHMENT] if type in _PAGES or type.endswith("+xml") else []


def location_headers(url: str) -> Headers:
    """The header that leads to a stored URL; none for a URL that is a script."""
    scheme = _IGNORED.sub("", url).partition(":")[0].lower()
    return [] if scheme in _SCRIPTS else [(b"location", encode_text(url).encode())]


def check_destination(request: Request) -> None:
    """Raises: ForbiddenDestination for what a page would run or embed."""
    destination = (request.header(b"sec-fetch-dest") or "").strip().lower()
    if destination in _DESTINATIONS:
        raise ForbiddenDestination(destination=destination)
