"""Requests for pages, as a browser sends them, but with a token instead of a session."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import httpx

from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api

TOKENS: Final = {
    "root": {"name": "root", "role": "admin"},
    "part": {"name": "part", "role": "writer"},
    "reader": {"name": "reader", "role": "reader"},
}
FORM: Final = "application/x-www-form-urlencoded"


def show(api: Api, path: str, by: str = "root", status: int = 200) -> HtmlPage:
    """A page. path: below `/ui/`."""
    answer = api.send("GET", f"/ui/{path}", authorization=f"Bearer {by}")
    assert answer.status_code == status, answer.text
    return HtmlPage(answer.text)


def submit(api: Api, path: str, by: str = "root", **fields: str) -> httpx.Response:
    """Submits a form and returns the response. path: below `/ui/`."""
    body = urlencode({name.rstrip("_"): value for name, value in fields.items()}).encode()
    return api.send("POST", f"/ui/{path}", body, authorization=f"Bearer {by}", content_type=FORM)


def follow(api: Api, answer: httpx.Response, by: str = "root") -> HtmlPage:
    """The page to which the response to a form redirects."""
    assert answer.status_code == 303, answer.text
    return show(api, answer.headers["location"].partition("/ui/")[2], by)
