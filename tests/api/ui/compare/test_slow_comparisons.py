"""Documents that cannot be compared by meaning in time: the page says so, and compares their texts."""

from __future__ import annotations

import json

import pytest

from annals.api.ui import surface
from annals.api.ui.compare import meaning_view
from tests.support.html_pages import HtmlPage
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving


def document(version: int) -> dict[str, object]:
    paths = {f"/p{number}": {"get": {"responses": {"200": {"description": "ok"}}}} for number in range(200)}
    return {"openapi": "3.1.0", "info": {"title": "t", "version": str(version)}, "paths": paths}


def store(api: Api) -> None:
    for version in (1, 2):
        body = json.dumps(document(version), indent=1).encode()
        headers = {"xregistry_format": "OpenAPI/3.1.0", "content_type": "application/json"}
        api.done("PUT", f"/dirs/d/files/f/versions/{version}", body, **headers)


def test_a_check_that_takes_too_long(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-27, UI-91, UI-92: the page shows the API's refusal as a sentence, and the difference of the texts."""
    # The checking process may start slowly on a busy machine; the page would then report its own time limit instead.
    monkeypatch.setattr(meaning_view, "SECONDS", 60.0)
    monkeypatch.setattr(surface, "PAGE_SECONDS", 60)
    create(sqlite_url)
    with serving(sqlite_url, check_seconds=0.001) as api:
        store(api)
        query = "left=1&right=2"
        assert api.send("GET", f"/-/compare/dirs/d/files/f?{query}").status_code == 400
        path = f"/ui/compare/dirs/d/files/f?{query}&of=meaning"
        answer = api.send("GET", path)
        assert answer.status_code == 400
        page = HtmlPage(answer.text)
        assert "checking it takes longer than the limit for one document" in page.statuses[0]
        assert [row[2] for row in page.table("Text difference") if len(row) > 1 and row[2]] == ["Changed"]
        assert "Meaning" in page.links


def test_a_comparison_that_takes_too_long(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-18: the page does not wait for a slow comparison; a later request shows the result."""
    create(sqlite_url)
    with serving(sqlite_url) as api:
        store(api)
        path = "/ui/compare/dirs/d/files/f?left=1&right=2&of=meaning"
        with monkeypatch.context() as patch:
            patch.setattr(meaning_view, "SECONDS", 0.0)
            answer = api.send("GET", path)
        assert answer.status_code == 503
        page = HtmlPage(answer.text)
        assert page.heading == "Compare" and "too large to be compared by meaning" in page.statuses[0]
        assert len(page.table("Text difference")) > 1
        until(lambda: api.send("GET", path).status_code == 200)
