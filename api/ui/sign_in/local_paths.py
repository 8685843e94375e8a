"""Paths of pages that a browser may be sent to after it has signed in (ACC-58)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from annals.api.http.request import Request

HOME: Final = "/ui/"
LOGIN: Final = "/ui/login"
#: Characters that a URL can have. Browsers take a backslash for a slash, and ignore control characters.
_CHARACTERS: Final = re.compile(r"[!-\[\]-~]+\Z")
_DOT_SEGMENTS: Final = (".", "..")
_MAX_LENGTH: Final = 1024


def local_path(text: str) -> str:
    """The path if it is one of a page of this server; else that of the first page.

    It begins with `/ui/`, also after a browser has removed its dot segments, and has no scheme, host or backslash.
    """
    if len(text) > _MAX_LENGTH or not text.startswith(HOME) or not _CHARACTERS.match(text):
        return HOME
    path = re.split(r"[?#]", text, maxsplit=1)[0]
    if "//" in text or path == LOGIN or path.startswith(f"{LOGIN}/"):
        return HOME
    return HOME if any(unquote(segment) in _DOT_SEGMENTS for segment in path.split("/")) else text


def login_path(request: Request) -> str:
    """The path of the sign-in from which a browser comes back to the page that it has requested."""
    query = "?" + request.query.decode("latin-1") if request.query else ""
    next = local_path(request.raw_path + query)
    return LOGIN if next == HOME else f"{LOGIN}?next={quote(next, safe='/')}"


def below_root(request: Request, path: str) -> str:
    """A path on this host: below the path of the registry's root, if it has one."""
    return urlsplit(request.base).path + path
