"""The page of findings: filters, pages, downloads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import NARROW, Walk, axe_script, check_look, click, walking
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("findings")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        for group, count in (("a", 4), ("b", 2)):
            messages = {
                f"m{each}": {"basemessageuri": f"/messagegroups/{group}/messages/none"} for each in range(count)
            }
            httpx.put(f"{served.url}/messagegroups/{group}", json={"messages": messages}).raise_for_status()
        yield served.url


@pytest.fixture
def walk(browser: Browser, url: str, has_scripts: bool) -> Iterator[Walk]:
    with walking(browser, url, java_script_enabled=has_scripts) as walk:
        yield walk


def entities(page: Page) -> list[str]:
    table = page.get_by_role("table", name="Findings", exact=True)
    return table.locator("tbody tr").locator("td:nth-child(3) a").all_inner_texts()


def test_findings(walk: Walk) -> None:
    """UI-52, UI-96: the pages list all findings; path, level and rule filter them; downloads have all matching rows."""
    every = httpx.get(f"{walk.url}/-/findings").json()["findings"]
    page = walk.go("/ui/findings?limit=4")
    assert page.get_by_role("columnheader").all_inner_texts() == ["Level", "Rule", "Entity", "Text"]
    found = entities(page)
    while page.get_by_role("link", name="Next", exact=True).count():
        click(page, "link", "Next")
        found += entities(page)
    assert found == [each["xid"] for each in every] and len(found) >= 6
    page.get_by_role("textbox", name="Path", exact=True).fill("/messagegroups/b")
    page.get_by_role("combobox", name="Level", exact=True).select_option(every[0]["level"])
    page.get_by_role("textbox", name="Rule", exact=True).fill(every[0]["rule"])
    click(page, "button", "Apply")
    assert {xid.split("/")[2] for xid in entities(page)} == {"b"}
    download = page.get_by_role("link", name="CSV", exact=True).get_attribute("href")
    assert download is not None
    rows = csv.DictReader(io.StringIO(httpx.get(download).text))
    assert [row["xid"] for row in rows] == entities(page)
    click(page, "link", entities(page)[0])
    expect(page.get_by_role("heading", level=1)).to_have_text("m0")


def test_the_past_has_its_own_findings(walk: Walk) -> None:
    """UI-37."""
    page = walk.go("/ui/findings?asof=5")
    expect(page.get_by_text("No finding.", exact=False)).to_be_visible()
    assert httpx.get(f"{walk.url}/ui/findings?path=/messagegroups/none").status_code == 404


def test_looks(browser: Browser, url: str) -> None:
    """UI-21, UI-22."""
    with walking(browser, url, viewport={"width": NARROW, "height": 800}) as walk:
        check_look(walk, axe_script(), "findings?limit=2")
