"""Reading pages: the form "As of", lists with filter, order and pages, entities with their Versions and documents."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from annals.api.ui.text_values import html_time
from tests.support.browser import Walk, click, walking
from tests.support.registries.sample import HOSTILE

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

SENSORS = "/ui/explore/schemagroups/sensors"


def ids(page: Page, name: str = "schemas") -> list[str]:
    rows = page.get_by_role("table", name=name, exact=True).get_by_role("rowheader")
    return [text.split("\n")[0].split(" ")[0] for text in rows.all_inner_texts()]


def test_the_way_down(walk: Walk) -> None:
    """UI-35, UI-41 to UI-43: links lead from the Group types to a Version, and breadcrumbs back up."""
    page = walk.go("/ui/")
    click(page, "link", "Explore")
    click(page, "link", "schemagroups")
    click(page, "link", "sensors")
    click(page, "link", "4 schemas")
    click(page, "link", "reading")
    versions = page.get_by_role("table", name="Versions", exact=True)
    newest = versions.get_by_role("row").filter(has=page.get_by_role("link", name="3", exact=True))
    expect(newest).to_contain_text("Default")
    versions.get_by_role("link", name="2", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2")
    breadcrumb = page.get_by_role("navigation", name="Breadcrumb", exact=True)
    assert breadcrumb.get_by_role("link").all_inner_texts() == [
        *("Registry", "schemagroups", "sensors", "schemas", "reading", "versions", "2"),
    ]
    breadcrumb.get_by_role("link", name="Registry", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Explore")
    assert walk.complaints == []


def test_lists(walk: Walk) -> None:
    """UI-15, UI-71, UI-72: filter, order and page are in the URL; the pages list each member once."""
    page = walk.go(f"{SENSORS}/schemas?limit=2")
    whole = sorted(httpx.get(f"{walk.url}/schemagroups/sensors/schemas").json(), key=str.casefold)
    first = ids(page)
    click(page, "link", "Next")
    assert [*first, *ids(page)] == whole
    expect(page.get_by_role("link", name="Next", exact=True)).to_have_attribute("aria-disabled", "true")
    click(page, "link", "Previous")
    assert ids(page) == first
    page = walk.go(f"{SENSORS}/schemas")
    click(page, "link", "Sort by schemaid")
    expect(page.get_by_role("columnheader", name="schemaid")).to_have_attribute("aria-sort", "ascending")
    click(page, "link", "Sort by schemaid")
    assert ids(page) == whole[::-1]
    page.get_by_role("textbox", name="Filter", exact=True).fill("format=Avro*&filter=contenttype=image*")
    click(page, "button", "Apply")
    assert ids(page) == ["reading", "picture"]
    page.reload()
    assert ids(page) == ["reading", "picture"]
    page.get_by_role("textbox", name="Filter", exact=True).fill("((=")
    click(page, "button", "Apply")
    expect(page.get_by_role("alert")).to_contain_text("filter")
    expect(page.get_by_role("textbox", name="Filter", exact=True)).to_have_value("((=")
    click(page, "link", "Clear")
    assert ids(page) == whole


def test_documents(walk: Walk) -> None:
    """UI-29, UI-74: texts are shown and never executed; of binary documents the first bytes are shown."""
    page = walk.go(f"{SENSORS}/schemas/alarm")
    document = page.get_by_role("region", name="Document", exact=True)
    expect(document).to_contain_text('"properties"')
    expect(document.get_by_role("link", name="Download", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Attributes", exact=True)).to_contain_text(HOSTILE)
    page = walk.go(f"{SENSORS}/schemas/picture")
    expect(page.get_by_role("region", name="Document", exact=True)).to_contain_text("89 50 4e 47")
    page = walk.go("/ui/explore/schemagroups/empty")
    expect(page.get_by_role("region", name="Attributes", exact=True)).to_contain_text("javascript:alert(1)")
    assert page.get_by_role("main").get_by_role("link", name=re.compile("javascript")).count() == 0
    expect(page.get_by_role("region", name="Deprecation", exact=True)).to_contain_text("Future")
    assert walk.complaints == []


def test_messages(walk: Walk) -> None:
    """UI-78: each value of a message links to the base that defines it; an endpoint lists its messages."""
    page = walk.go("/ui/explore/messagegroups/sensors/messages/reading")
    row = page.get_by_role("row").filter(has_text="/envelopemetadata/type/value")
    expect(row).to_contain_text("com.example.reading")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1")
    page = walk.go("/ui/explore/endpoints/telemetry")
    messages = page.get_by_role("region", name="Messages", exact=True)
    click(page, "link", "/messagegroups/sensors/messages/base")
    expect(messages).to_have_count(0)


def test_the_past(walk: Walk) -> None:
    """UI-32, UI-36, UI-37: pages of the past have links that preserve the position, no writes, and a link to now."""
    page = walk.go(SENSORS)
    group = httpx.get(f"{walk.url}/-/history/schemagroups/sensors").json()
    created = group[0]["position"]
    after = httpx.get(f"{walk.url}/-/interactions/{group[0]['xregcorrelationid']}").json()["last"]
    asof = page.get_by_role("form", name="As of", exact=True)
    asof.get_by_role("spinbutton", name="Position", exact=True).fill(str(after))
    asof.get_by_role("button", name="Go", exact=True).click()
    expect(page).to_have_url(f"{walk.url}{SENSORS}?asof={after}")
    expect(page.get_by_role("status").filter(has_text="As of")).to_contain_text(f"As of position {after}, ")
    expect(page.get_by_role("main")).to_contain_text("Readings of all sensors.")
    for name in ("Edit", "Delete"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    click(page, "link", "4 schemas")
    expect(page).to_have_url(f"{walk.url}{SENSORS}/schemas?asof={after}")
    click(page, "link", "Now")
    expect(page).to_have_url(f"{walk.url}{SENSORS}/schemas")
    page = walk.go(f"{SENSORS}?asof={created - 1}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")


def test_the_slider(walk: Walk) -> None:
    """UI-36: arrow keys move the slider, it announces its position, and Enter opens that position."""
    page = walk.go("/ui/")
    slider = page.get_by_role("slider", name="Log position", exact=True)
    head = int(slider.input_value())
    slider.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(rf"^{head - 1}, \d{{4}}-\d\d-\d\d"))
    slider.press("Enter")
    expect(page).to_have_url(f"{walk.url}/ui/?asof={head - 1}")
    assert walk.complaints == []


def test_times_are_local(browser: Browser, sample_url: str) -> None:
    """UI-25, UI-36: times are shown in the browser's time zone, with its name; the form accepts local times."""
    time = httpx.get(f"{sample_url}/-/log/head").json()["time"]
    with walking(browser, sample_url, timezone_id="Asia/Tokyo") as walk:
        check_local_times(walk, time)


def check_local_times(walk: Walk, time: str) -> None:
    page = walk.go("/ui/")
    shown = page.locator("main time").first
    expect(shown).to_have_attribute("datetime", html_time(time))
    expect(shown).to_have_text(re.compile(r"GMT\+9$|JST$"))
    expect(shown).to_have_attribute("title", f"{time[:10]} {time[11:19]} UTC")
    field = page.get_by_label("Date and time", exact=True)
    field.fill("2099-01-01T09:00:00")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page).to_have_url(re.compile(r"asof=2099-01-01T00:00:00Z"))
