"""The URI family of data types, checked by syntax alone.

A `{name}` placeholder is allowed wherever a character is, because values are stored as templates (EP-39).
Spec: RFC 3986, sections 4.1 to 4.3 and 1.1.3; RFC 6570, section 2.
"""

from __future__ import annotations

import re
from typing import Final

_CHAR: Final = r"[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2}|\{[A-Za-z0-9_]+\}"
_REFERENCE: Final = re.compile(
    rf"""(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):)?
         (?://(?:{_CHAR}|\[[0-9A-Fa-fv.:]+\])*(?=[/?\#]|\Z))?
         (?P<path>(?:{_CHAR}|/)*)
         (?:\?(?:{_CHAR}|[/?])*)?
         (?P<fragment>\#(?:{_CHAR}|[/?])*)?\Z""",
    re.VERBOSE,
)
_VARIABLE: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?::[1-9][0-9]{0,3}|\*)?"
_TEMPLATE: Final = re.compile(
    rf"(?:[^\x00-\x20\x7f\"%<>\\^`{{|}}]|%[0-9A-Fa-f]{{2}}|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*\Z"
)


def reference(value: str) -> str:
    """A URI reference, absolute or relative. Raises: ValueError."""
    _match_uri(value)
    return value


def absolute(value: str) -> str:
    """An absolute URI: it has a scheme and no fragment. Raises: ValueError."""
    match = _match_uri(value)
    if not match["scheme"] or match["fragment"] is not None:
        raise ValueError("it is not an absolute URI, which has a scheme and no fragment")
    return value


def relative(value: str) -> str:
    """A relative URI reference: it has no scheme. Raises: ValueError."""
    if _match_uri(value)["scheme"]:
        raise ValueError("it is not a relative URI: it has a scheme")
    return value


def locator(value: str) -> str:
    """The value, if it can locate its target, as a URL does and a URN does not. Raises: ValueError."""
    if value[:4].lower() == "urn:":
        raise ValueError("a URN is not a URL")
    return value


def template(value: str) -> str:
    """A URI template of any level. Raises: ValueError."""
    if not _TEMPLATE.match(value):
        raise ValueError("it is not a URI template (RFC 6570)")
    return value


def _match_uri(value: str) -> re.Match[str]:
    match = _REFERENCE.match(value)
    if match is None:
        raise ValueError("it is not a URI (RFC 3986)")
    first = match["path"].partition("/")[0]
    if not match["scheme"] and ":" in first and "{" not in first and match.start("path") == 0:
        raise ValueError("it is not a URI: the part before its first colon is not a scheme")
    return match
