"""Searches in a browser, with and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import Walk, walking
from tests.support.polling import until

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

_READING: Final = "/schemagroups/sensors/schemas/reading"


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def walk(request: pytest.FixtureRequest, browser: Browser, sample_url: str) -> Iterator[Walk]:
    until(lambda: httpx.get(f"{sample_url}/-/search?q=celsius").json()["count"] == 1)
    with walking(browser, sample_url, java_script_enabled=request.param) as walk:
        yield walk


def _results(page: Page) -> Locator:
    return page.get_by_role("list", name="Results", exact=True).locator("> li")


def test_the_field_of_each_page_leads_to_results(walk: Walk) -> None:
    """UI-31, UI-50, UI-107: each hit names the field that matched, with the matching words marked."""
    page = walk.go("/ui/explore/")
    page.get_by_role("searchbox", name="Search", exact=True).fill("celsius temp")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    expect(page.get_by_role("status")).to_have_text("1 results")
    expect(page.get_by_role("searchbox", name="Search", exact=True)).to_have_value("celsius temp")
    result = _results(page)
    expect(result).to_have_count(1)
    expect(result.get_by_text("field temperature", exact=True).first).to_be_visible()
    assert [text.lower() for text in result.locator("mark").all_inner_texts()] == ["temperature", "celsius"]
    result.get_by_role("link", name=_READING, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("reading")


def test_nothing_is_found(walk: Walk) -> None:
    """UI-107: without results, the page says which texts a search covers."""
    page = walk.go("/ui/search?q=nowhere")
    expect(page.get_by_role("status")).to_have_text("0 results")
    expect(page.get_by_text("A search looks at ids, names, descriptions and labels")).to_be_visible()


def test_a_query_that_cannot_be_read(walk: Walk) -> None:
    """UI-26, UI-27, UI-101: the page reports the error and preserves the query."""
    page = walk.go("/ui/search?q=color:red")
    expect(page.get_by_role("alert")).to_contain_text("color:")
    expect(page.get_by_role("searchbox", name="Search", exact=True)).to_have_value("color:red")


def test_pages(walk: Walk) -> None:
    """UI-50, UI-104."""
    page, seen = walk.go("/ui/search?q=type:schemagroups.schemas&limit=2"), set()
    while True:
        seen |= set(_results(page).get_by_role("link").all_inner_texts())
        following = page.get_by_role("navigation", name="Pages", exact=True).get_by_role(
            "link", name="Next", exact=True
        )
        if following.get_attribute("aria-disabled"):
            break
        following.click()
    assert len(seen) == 4 and _READING in seen


def test_the_past_is_not_searched(sample_url: str) -> None:
    """UI-105."""
    assert httpx.get(f"{sample_url}/ui/search?q=x&asof=3").status_code == 400
