"""Numbers that a double cannot hold: on pages and in forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest

from annals.api.ui.model.definition_pages import MAX_BYTES
from annals.api.ui.model.text_difference import MAX_COMPARED, MAX_SHOWN, difference
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
        assert posted(api, "edit/dirs/d", action="save", name="n", epoch=number).status_code < 500
        assert posted(api, "edit/dirs/d/files/f", action="save", metaepoch=number, epoch=number).status_code < 500


def test_a_long_time_of_grace(sqlite_url: str) -> None:
    """UI-59: the same error as the API's."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS), api_keys=True) as api:
        id = api.done("POST", "/-/keys", {"name": "n", "role": "reader"}, authorization="Bearer root").json()["id"]
        for number in ("9" * 20, "9" * 5000):
            assert posted(api, f"keys/{id}/rotate", "root", grace=number).status_code == 400


def test_the_registry_is_no_entity_of_the_explorer(api: Api) -> None:
    assert api.send("GET", "/ui/explore/%2F").status_code == 404


def test_forms_with_long_texts(sqlite_url: str) -> None:
    """UI-18, UI-57: a form has a limit, long differences are cut, and who may not save causes no work."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS)) as api:
        assert posted(api, "model", "root", action="preview", text="[" + "1," * MAX_BYTES + "1]").status_code == 413
        assert posted(api, "model", "rita", action="preview", text="no JSON").status_code == 403
    old, new = ("\n".join(f"{word} {n}" for n in range(MAX_SHOWN)) for word in ("old", "new"))
    cut = difference(old, new)
    assert (len(cut.lines), cut.is_too_long) == (MAX_SHOWN, False)
    assert cut.left_out == 2 * MAX_SHOWN + 1 - MAX_SHOWN  # with the line that says where they are
    assert difference(old, "\n" * (MAX_COMPARED + 1)).is_too_long
