"""Properties of every page: accessible, no console errors, no requests to other hosts, no horizontal scrolling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from annals.api.ui.routes import PAGES
from tests.support.browser import NARROW, WIDE, Walk, axe_script, check_look, walking
from tests.support.registries.sample_pages import ALL, PATHS

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

LOOKS: Final = [
    ("light", WIDE),
    pytest.param(("dark", NARROW), marks=pytest.mark.long),
    pytest.param(("light", NARROW), marks=pytest.mark.long),
    pytest.param(("dark", WIDE), marks=pytest.mark.long),
]


def test_each_page_is_walked() -> None:
    assert set(PATHS) == {route.template for route in PAGES.routes}


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_script()


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}", scope="module")
def looking(request: pytest.FixtureRequest, browser: Browser, sample_url: str) -> Iterator[Walk]:
    scheme, width = request.param
    with walking(browser, sample_url, color_scheme=scheme, viewport={"width": width, "height": 800}) as walk:
        yield walk


@pytest.mark.parametrize("path", ALL)
def test_looks(looking: Walk, axe: str, path: str) -> None:
    """UI-12, UI-14, UI-19, UI-21, UI-22."""
    looking.complaints.clear()
    check_look(looking, axe, path)


@pytest.mark.parametrize("path", ALL)
def test_without_scripts(browser: Browser, sample_url: str, path: str) -> None:
    """UI-13, UI-20, UI-26: the page has its content, and the first link skips to it."""
    with walking(browser, sample_url, java_script_enabled=False) as walk:
        page = walk.go(f"/ui/{path}")
        expect(page.locator("h1")).to_be_visible()
        if page.get_by_role("alert").count():  # an alert has the focus
            expect(page.get_by_role("alert")).to_be_focused()
            return
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()


def test_the_theme_stays(walk: Walk) -> None:
    """UI-23: the choice also applies to the next page."""
    page = walk.go("/ui/")
    page.get_by_role("combobox", name="Theme", exact=True).select_option("Dark")
    assert walk.go("/ui/?asof=20").evaluate("document.documentElement.dataset.theme") == "Dark"
