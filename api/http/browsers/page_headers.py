"""Headers of the server's own pages: what they may load, and what other pages may do with them (ACC-101).

W3C, "Content Security Policy Level 3"; HTML, "Cross-origin opener policies"; Fetch, "Cross-Origin-Resource-Policy".
"""

from __future__ import annotations

from typing import Final

from annals.api.http.response import Headers

_FIXED: Final[Headers] = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def page_headers(policy: str) -> Headers:
    """The headers of a page. policy: its content security policy."""
    return [*_FIXED, (b"content-security-policy", policy.encode())]
