"""Pages stay below 1 MB: long parts are cut, and a page that cannot be cut is refused (UI-18)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from annals.api.ui.explore.document_region import MAX_NUMBERED, describe_document
from annals.api.ui.explore.highlight import highlight
from annals.api.ui.html_size import MAX_PAGE, MAX_PART, count_within, cut_text, html_size
from annals.api.ui.json_layout import break_json, is_json
from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api, create, serving

FORM = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
MARKUP = "<\"&'>"


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url) as api:
        yield api


@pytest.mark.parametrize(("text", "limit"), [("<" * 100, 41), ('é"&' * 50, 100), ("abc", 3), ("", 0), ("<", 3)])
def test_a_text_is_cut_where_its_html_ends(text: str, limit: int) -> None:
    shown, left_out = cut_text(text, limit)
    assert text.startswith(shown) and len(shown) + left_out == len(text) and html_size(shown) <= limit
    assert not left_out or html_size(text[: len(shown) + 1]) > limit


def test_the_first_rows_that_fit() -> None:
    assert [count_within([3, 3, 3], limit) for limit in (0, 3, 8, 9, 100)] == [0, 1, 2, 3, 3]


def test_marks_are_left_out_where_they_are_too_long() -> None:
    """UI-18, UI-74: a document that would need too much markup is shown whole, without highlighting."""
    text = "[\n" + "1," * 100_000 + "1]"
    html, left_out = highlight(text, "application/json", "")
    assert (html, left_out) == (text, 0)
    assert "<span" in highlight(text[:100], "application/json", "").html
    html, left_out = highlight(MARKUP * 100_000, "text/plain", "", is_plain=True)
    assert left_out > 0 and html_size(MARKUP) * 10_000 < len(html) <= MAX_PART


@pytest.mark.parametrize(("row", "media_type"), [("&", "text/xml"), ("%", "text/yaml")])
def test_marks_are_left_out_where_they_take_too_long(row: str, media_type: str) -> None:
    """UI-18: the time of a page does not grow with the square of a document."""
    text = row * (256 << 10)
    began = time.thread_time()
    assert "<span" not in highlight(text, media_type, "").html
    assert time.thread_time() - began < 3


def test_deep_json_does_not_grow() -> None:
    """UI-18: the size of deeply nested JSON with line breaks is not quadratic."""
    text = "[" * 900 + "1" + ",1" * 5_000 + "]" * 900
    assert is_json(text) and len(break_json(text)) < 60 * len(text)
    assert not is_json("[" * 100_000 + "]" * 100_000)


def test_pages_that_cannot_be_cut_are_refused(api: Api) -> None:
    """UI-18, UI-27: a page that cannot be cut is refused, with a link to the API, which returns everything."""
    api.done("PUT", "/dirs/d/files/f0$details", {f"a{number}": MARKUP * 600 for number in range(100)})
    page = api.send("GET", "/ui/explore/dirs/d/files/f0")
    assert page.status_code == 200 and len(page.content) <= MAX_PAGE and "more attributes" in page.text
    page = api.send("GET", "/ui/edit/dirs/d/files/f0")
    assert page.status_code == 406 and "too large" in HtmlPage(page.text).statuses[0]
    assert re.search(r'href="http://h/r/[^"]*">Raw JSON</a>', page.text)


def test_long_documents_are_replaced_by_files(api: Api) -> None:
    """UI-18, UI-44: a document that is too large to edit as text is not in the form, and a save leaves it unchanged."""
    api.done("PUT", "/dirs/d/files/f", (MARKUP * 40_000).encode(), content_type="text/plain")
    page = HtmlPage(api.send("GET", "/ui/edit/dirs/d/files/f").text)
    assert "A file replaces it." in page.main.text and "Document" not in page.fields
    body = urlencode({"form action": "save", "name": "named", "loaded epoch": "1"}).encode()
    assert api.send("POST", "/ui/edit/dirs/d/files/f", body, **FORM).status_code == 303
    assert api.send("GET", "/dirs/d/files/f").text == MARKUP * 40_000


def test_a_conflict_does_not_repeat_documents(api: Api) -> None:
    """UI-18, UI-84: the page of a conflict cuts the stored document; if it is chosen, its bytes stay the same."""
    path = "/dirs/d/files/f"
    api.done("PUT", path, b"first\r\n", content_type="text/plain")
    position = api.get("/-/log/head")["position"]
    theirs, yours = b"theirs\r\n" * 30_000, "yours\n" * 30_000
    api.done("PUT", path, theirs, content_type="text/plain")
    state = {"loaded epoch": "1", "loaded position": str(position)}
    fields = {"form action": "save", "name": "named", "document text": yours, **state}
    answer = api.send("POST", f"/ui/edit{path}", urlencode(fields).encode(), **FORM)
    assert answer.status_code == 409 and answer.text.count("theirs") < 5_000 and "more characters" in answer.text
    hidden = re.findall(r'<input type="hidden" name="([\w ]+)" value="([^"]*)"', answer.text)
    merged = {**fields, **dict(hidden), "form action": "merged", "pick document text": "theirs"}
    assert api.send("POST", f"/ui/edit{path}", urlencode(merged).encode(), **FORM).status_code == 303
    assert api.send("GET", path).content == theirs and api.get(f"{path}$details")["name"] == "named"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("a", "1"), ("a\n", "1"), ("a\r\nb\rc\n\n", "1\n2\n3\n4"), ("\n" * MAX_NUMBERED, None), ("a\n" * 20_001, "")],
)
def test_lines_are_numbered(text: str, numbers: str | None) -> None:
    """UI-18, UI-74: lines are numbered as a browser breaks them, if the page has room for the numbers."""
    shown = describe_document(text.encode(), "text/plain", "")["numbers"]
    assert shown == numbers if numbers is not None else shown.endswith(f"\n{MAX_NUMBERED}")
