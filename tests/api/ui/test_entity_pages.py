"""What the page of an entity offers and lists: Resources that refer to another one, and many Versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from annals.api.ui.explore import versions_region
from tests.api.ui.pages import TOKENS, show
from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api, create, serving

ROOT = {"authorization": "Bearer root"}
FILES = "/dirs/d/files"
ACTIONS = {"Edit", "Edit target", "New version", "Delete", "Restore", "Create version"}
VIEWS = {"Details", "History", "Compare"}


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS)) as api:
        yield api


def offered(page: HtmlPage, names: set[str]) -> set[str]:
    return names & page.links.keys()


def test_what_a_resource_with_an_xref_offers(api: Api) -> None:
    """UI-17, UI-43, UI-70: only what succeeds. Its values and Versions are those of its target."""
    api.done("PUT", f"{FILES}/t/versions/1", b"text", **ROOT)
    api.done("PUT", f"{FILES}/x/meta", {"xref": f"{FILES}/t"}, **ROOT)
    api.done("PUT", f"{FILES}/nowhere/meta", {"xref": f"{FILES}/none"}, **ROOT)
    page = show(api, f"explore{FILES}/x")
    assert offered(page, ACTIONS) == {"Edit target", "Delete"} and offered(page, VIEWS) == VIEWS
    assert page.links["Edit target"] == f"/r/ui/edit{FILES}/t"
    assert offered(show(api, f"explore{FILES}/x", by="reader"), ACTIONS) == set()
    page = show(api, f"explore{FILES}/nowhere")
    assert offered(page, ACTIONS) == {"Delete"} and offered(page, VIEWS) == {"Details", "History"}
    assert "Compare selected" not in page.buttons
    for path in ("x/versions/1", "x/versions"):
        assert offered(show(api, f"explore{FILES}/{path}"), ACTIONS) == set()
    assert offered(show(api, f"explore{FILES}/t"), ACTIONS) == {"Edit", "New version", "Delete"}
    assert offered(show(api, f"explore{FILES}/t/versions/1"), ACTIONS) == {"Edit", "Delete"}
    assert offered(show(api, f"explore{FILES}/t/versions"), ACTIONS) == {"Create version"}
    position = api.done("GET", "/-/log/head", **ROOT).json()["position"]
    assert offered(show(api, f"explore{FILES}/x?asof={position}"), ACTIONS) == {"Restore"}
    assert offered(show(api, f"explore{FILES}/x/versions/1?asof={position}"), ACTIONS) == set()


def make_versions(api: Api, *ids: str) -> None:
    for id in ids:
        api.now += timedelta(seconds=1)
        api.done("PUT", f"{FILES}/f/versions/{id}", b"", **ROOT)


def test_more_versions_than_a_page_shows(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-18, UI-75: the newest ones are shown, with the default one, and the page says so."""
    monkeypatch.setattr(versions_region, "MAX_ROWS", 3)
    make_versions(api, "z", "y", "c")
    page = show(api, f"explore{FILES}/f")
    assert [row[0] for row in page.table("Versions")] == ["z", "y", "c"]
    assert "All Versions" not in page.links
    make_versions(api, "b", "a")
    page = show(api, f"explore{FILES}/f")
    assert [row[0] for row in page.table("Versions")] == ["c", "b", "a"]
    assert "Default" in page.table("Versions")[-1][-1]
    assert "The newest 3 of 5 Versions." in page.region("Versions").text
    assert page.links["All Versions"] == f"/r/ui/explore{FILES}/f/versions"
    api.done("PATCH", f"{FILES}/f/meta", {"defaultversionid": "y", "defaultversionsticky": True}, **ROOT)
    page = show(api, f"explore{FILES}/f")
    assert [row[0] for row in page.table("Versions")] == ["y", "b", "a"]
    assert "Default Sticky" in page.table("Versions")[0][-1]
    assert "The default one and the newest of 5 Versions." in page.region("Versions").text
    position = api.done("GET", "/-/log/head", **ROOT).json()["position"]
    assert show(api, f"explore{FILES}/f?asof={position}").table("Versions") == page.table("Versions")
