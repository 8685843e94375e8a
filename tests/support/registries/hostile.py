"""A registry with content that makes pages large or wide: long documents, many members, texts with markup."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, Final

import httpx

#: A text that pages must not interpret: markup, a quote that would end an attribute, and text direction marks.
MARKUP: Final = (
    "\"><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>\u202e\u2067 </td>{{7*7}}"
)
#: A word that is wider than a line.
LONG_WORD: Final = "W" * 3_000
VERSIONS: Final = 10_000
MEMBERS: Final = 20_000
MESSAGES: Final = 1_000
ATTRIBUTES: Final = 200
_PLAIN: Final = {"format": "TEXT/x", "contenttype": "text/plain"}
_JSON: Final = {"format": "JsonSchema/draft-07", "contenttype": "application/json"}
_NAMED: Final = {
    "name": MARKUP,
    "labels": {"team": MARKUP, "right": "\u202eabc\u202c \u05d0\u05d1\u05d2", "long": LONG_WORD},
}
_QUOTES: Final = b"\"<&>' \n"


def _schemas() -> dict[str, Any]:
    """Schemas whose HTML is much longer than their documents, one with many attributes, one with many Versions."""
    attributes = {f"extension{number}": f"{MARKUP} {number} " * 20 for number in range(ATTRIBUTES)}
    lines = {f"p{number}": MARKUP for number in range(8_000)}
    return {
        "marks": {**_NAMED, **_JSON, "schema": {"enum": [number % 10 for number in range(120_000)]}},
        "nested": {**_NAMED, **_PLAIN, "schemabase64": b64encode(b"[" * 90_000 + b"]" * 90_000).decode()},
        "quotes": {**_NAMED, **_PLAIN, "schemabase64": b64encode(_QUOTES * (1_000_000 // len(_QUOTES))).decode()},
        "longer": {**_NAMED, **_PLAIN, "schemabase64": b64encode(b"a" * 9_000_000).decode()},
        "markup": {**_NAMED, **_JSON, "schema": {"description": MARKUP * 9_000, "title": LONG_WORD}},
        "lines": {"versions": {"1": {**_JSON, "schema": lines}, "2": {**_JSON, "schema": lines | {"q": LONG_WORD}}}},
        "attributes": {"name": MARKUP, **_PLAIN, **attributes},
        "versions": {"versions": {f"v{number}": {"name": MARKUP, **_PLAIN} for number in range(VERSIONS)}},
    }


def fill(url: str) -> None:
    """Writes the content into a registry with the default model, one request for each Group type."""
    members = {f"member{number}": {**_PLAIN, "name": MARKUP, "labels": {"a": MARKUP}} for number in range(MEMBERS)}
    messages = {f"m{number}": {"name": MARKUP, "envelope": "CloudEvents/1.0"} for number in range(MESSAGES)}
    group = {**_NAMED, "description": MARKUP * 20, "documentation": "javascript:alert(1)", "schemas": _schemas()}
    bodies: dict[str, Any] = {
        "/schemagroups": {"hostile": group, "many": {"schemas": members}},
        "/messagegroups": {"many": {"messages": messages}},
        "/endpoints": {"all": {"usage": ["producer"], "messagegroups": ["/messagegroups/many"]}},
    }
    with httpx.Client(base_url=url, timeout=300) as client:
        for path, body in bodies.items():
            answer = client.post(path, content=json.dumps(body).encode())
            assert answer.is_success, answer.text[:1000]
