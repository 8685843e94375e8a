"""Differences that the views "Text" and "Attributes" of the page "Compare" have to show, however small they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from annals.api.ui.compare.text_view import CHANGED, MAX_WIDTH, text_difference
from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api, create, serving

ONLY_LINE_ENDS = "The lines are equal; line ends or the end of the document differ."
ONLY_SPACE = "The documents differ in white space only."


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url) as api:
        yield api


def compared(api: Api, left: bytes, right: bytes, of: str) -> HtmlPage:
    for version, document in enumerate((left, right), start=1):
        api.done("PUT", f"/dirs/d/files/f/versions/{version}", document, content_type="text/plain")
    answer = api.send("GET", f"/ui/compare/dirs/d/files/f?left=1&right=2&of={of}")
    assert answer.status_code == 200, answer.text
    return HtmlPage(answer.text)


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (b"a\nb\n", b"a\r\nb\r\n", ONLY_LINE_ENDS),
        (b"a\rb", b"a\nb", ONLY_LINE_ENDS),
        (b"a\nb\n", b"a\nb", ONLY_LINE_ENDS),
        (b'{"a":1}', b'{"a": 1}\n', ONLY_SPACE),
        (b"a\nb\n", b"a\nb\n", "No difference"),
    ],
)
def test_equal_lines(api: Api, left: bytes, right: bytes, reason: str) -> None:
    """UI-91: documents that differ are not said to be equal."""
    assert compared(api, left, right, "text").statuses == [reason]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\v", "\f", "\x1c", "\x85"])
def test_what_ends_a_line(character: str) -> None:
    """UI-91: line feeds and carriage returns do, as in the table of a browser, and no other character."""
    found = text_difference(f"a{character}b\nc", "a\nb\nc")
    assert found is not None
    assert [row.left for row in found.rows if row.left] == [(1, f"a{character}b"), (2, "c")]


@pytest.mark.parametrize("place", [1, 150, 350, 398, 399, 400, 5_000])
@pytest.mark.parametrize("tail", ["", "z" * 1_000])
def test_long_lines_are_cut_around_the_first_difference(place: int, tail: str) -> None:
    """UI-18, UI-91: the texts that are shown of a changed line differ."""
    for left, right in (("one", "two"), ("", "more"), ("one", "one and more")):
        found = text_difference("x" * place + left + tail, "x" * place + right + tail)
        assert found is not None
        (row,) = found.rows
        assert row.change == CHANGED and row.left is not None and row.right is not None
        assert row.left != row.right and max(len(row.left[1]), len(row.right[1])) <= MAX_WIDTH


def test_attributes_of_versions_name_their_documents(api: Api) -> None:
    """UI-94: as the differences of an entity at two moments do."""
    hashes = [hashlib.sha256(document).hexdigest() for document in (b"a", b"b")]
    rows = compared(api, b"a", b"b", "attributes").table("Attributes")
    assert ["/dirs/d/files/f", "changed", "document (SHA-256)", *hashes] in rows
    assert "document (SHA-256)" not in str(compared(api, b"a", b"a", "attributes").table("Attributes"))
