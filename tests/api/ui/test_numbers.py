"""Numbers that a double cannot hold: on pages and in forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest

from annals.api.ui.json_layout import MAX_LINES, indent, line_count
from annals.api.ui.model.definition_pages import MAX_BYTES, MAX_TEXT
from annals.api.ui.model.text_difference import MAX_COMPARED, MAX_SHOWN, difference
from annals.domain.values.json_text import dumps_indented, loads
from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api, create, serving

FORM = {"content_type": "application/x-www-form-urlencoded", "sec_fetch_site": "same-origin"}
TOKENS = {"root": {"name": "root", "role": "admin"}, "rita": {"name": "rita", "role": "reader"}}
EXACT = "[1.10, 1e400, 12345678901234567890, 0.1]"
#: 1.10 has a digit that a double loses.
ATTRIBUTES = b'{"price": {"type": "decimal", "default": 1.10, "required": true}, "*": {"type": "any"}}'
MODEL = b'{"groups": {"dirs": {"singular": "dir", "attributes": %b}}}' % ATTRIBUTES


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url) as api:
        yield api


def posted(api: Api, path: str, by: str = "", **fields: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {by}"} if by else {}
    return api.send("POST", f"/ui/{path}", urlencode(fields).encode(), **FORM, **headers)


def test_exact_numbers_are_shown_and_edited(api: Api) -> None:
    """UI-57, UI-71, SER-13: pages show the numbers as the API does."""
    api.done("PUT", "/modelsource", MODEL, content_type="application/json")
    [text] = HtmlPage(api.done("GET", "/ui/model").text).main.all("textarea")
    assert '"default": 1.10' in text.text
    body = f'{{"more": {EXACT[:-1]}, "{"x" * 80}"]}}'.encode()
    api.done("PUT", "/dirs/d", body, content_type="application/json")
    page = api.done("GET", "/ui/edit/dirs/d").text
    assert all(number in page for number in ("1.10", "1E+400", "12345678901234567890"))
    assert posted(api, "model", action="preview", text=f'{{"groups": {EXACT}}}').status_code == 400
    assert posted(api, "capabilities", action="preview", text=f'{{"pagination": {EXACT}}}').status_code == 400


def test_long_numbers_in_forms(api: Api) -> None:
    """UI-50: they are no epochs, and no 500."""
    api.done("PUT", "/dirs/d", {"files": {"f": {}}})
    for number in ("9" * 20, "9" * 5000):
        assert (
            posted(api, "edit/dirs/d", **{"form action": "save", "name": "n", "loaded epoch": number}).status_code < 500
        )
        fields = {"form action": "save", "name": "n", "loaded meta epoch": number, "loaded epoch": number}
        assert posted(api, "edit/dirs/d/files/f", **fields).status_code < 500


def test_a_long_time_of_grace(sqlite_url: str) -> None:
    """UI-59: the same error as the API's."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS), api_keys=True) as api:
        id = api.done("POST", "/-/keys", {"name": "n", "role": "reader"}, authorization="Bearer root").json()["id"]
        for number in ("9" * 20, "9" * 5000):
            assert posted(api, f"keys/{id}/rotate", "root", grace=number).status_code == 400


def test_the_registry_is_no_entity_of_the_explorer(api: Api) -> None:
    assert api.send("GET", "/ui/explore/%2F").status_code == 404


def test_only_a_document_is_checked(api: Api) -> None:
    api.done("PUT", "/dirs/d", {})
    for path in ("edit/", "edit/%2F", "edit/dirs/d"):
        assert posted(api, path, **{"form action": "check"}).status_code == 400


@pytest.mark.parametrize("path", ["model", "capabilities"])
def test_texts_that_are_too_long(api: Api, path: str) -> None:
    """UI-18, UI-57: the form says so, and has the text that was sent, or what is stored if nothing was read."""
    [stored] = HtmlPage(api.done("GET", f"/ui/{path}").text).main.all("textarea")
    long = "[" + "1" * MAX_TEXT + "]"
    for action, text, shown in (("preview", long, long), ("save", long, long), ("save", "1" * MAX_BYTES, stored.text)):
        answer = posted(api, path, action=action, text=text)
        main = HtmlPage(answer.text).main
        [area] = main.all("textarea")
        assert answer.status_code == 413 and area.text.strip() == shown.strip()
        assert f"larger than {MAX_TEXT:,} bytes" in main.text and "PUT /" in main.text
    assert posted(api, path, action="preview", text="[" + "1" * (MAX_TEXT - 2) + "]").status_code == 400


def test_deep_values_do_not_grow(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-18: each line of a deep value begins with its depth in spaces, so that many such lines are not indented."""

    def refuse(value: object) -> str:
        raise AssertionError("a value with many lines was indented")

    deep = "[" * 200 + "1," * MAX_LINES + "1" + "]" * 200
    model = '{"groups": {"dirs": {"singular": "dir", "attributes": {"*": {"type": "any"}}}}}'
    api.done("PUT", "/modelsource", model.encode(), content_type="application/json")
    api.done("PUT", "/dirs/d", f'{{"more": {deep}}}'.encode(), content_type="application/json")
    monkeypatch.setattr("annals.api.ui.json_layout.dumps_indented", refuse)
    assert deep in api.done("GET", "/ui/edit/dirs/d").text
    answer = posted(api, "model", action="preview", text=deep)
    assert answer.status_code == 400 and "too many lines to compare" in HtmlPage(answer.text).main.text


@pytest.mark.parametrize("text", ["1", "[]", "{}", '"a\\nb"', "[1, 2]", '{"a": [1, {}], "b": {"c": [[]]}}', EXACT])
def test_lines_are_counted(text: str) -> None:
    value = loads(text)
    assert line_count(value) == len(dumps_indented(value).splitlines())
    assert indent(value) == dumps_indented(value)


def test_forms_with_long_differences(sqlite_url: str) -> None:
    """UI-18, UI-57: long differences are cut, and who may not save causes no work."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS)) as api:
        assert posted(api, "model", "rita", action="preview", text="no JSON").status_code == 403
        assert posted(api, "model", "rita", action="preview", text="1" * MAX_BYTES).status_code == 403
    old, new = ("\n".join(f"{word} {n}" for n in range(MAX_SHOWN)) for word in ("old", "new"))
    cut = difference(old, new)
    assert (len(cut.lines), cut.is_too_long) == (MAX_SHOWN, False)
    assert cut.left_out == 2 * MAX_SHOWN + 1 - MAX_SHOWN  # with the line that says where they are
    assert difference(old, "\n" * (MAX_COMPARED + 1)).is_too_long
