"""Pages of the history: the timeline, an interaction, and links to past moments."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import NARROW, WIDE, Walk, axe_script, check_look, click, walking
from tests.support.registries.sample import fill
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

GROUP = "/schemagroups/sensors"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("history")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        for number in range(6):
            httpx.patch(f"{served.url}{GROUP}", json={"description": f"{number} times"}).raise_for_status()
        httpx.put(f"{served.url}/schemagroups/gone", json={}).raise_for_status()
        httpx.delete(f"{served.url}/schemagroups/gone").raise_for_status()
        yield served.url


@pytest.fixture
def walk(browser: Browser, url: str, has_scripts: bool) -> Iterator[Walk]:
    with walking(browser, url, java_script_enabled=has_scripts, timezone_id="Asia/Kolkata") as walk:
        yield walk


def table(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name, exact=True)


def rows(page: Page, name: str) -> list[str]:
    return table(page, name).locator("tbody > tr").all_inner_texts()


def ids(url: str, **query: str) -> list[str]:
    return [each["xregcorrelationid"] for each in httpx.get(f"{url}/-/interactions", params=query).json()]


def test_all_pages_of_the_timeline(walk: Walk) -> None:
    """UI-48, UI-72, UI-95: the pages list each interaction once, newest first, forward and back."""
    page = walk.go("/ui/timeline?limit=4")
    for name in ("Time", "Caller", "Command", "Entities", "Correlation id"):
        expect(table(page, "Interactions").get_by_role("columnheader", name=name, exact=True)).to_be_visible()
    shown = [rows(page, "Interactions")]
    while page.get_by_role("link", name="Next", exact=True, disabled=False).count():
        click(page, "link", "Next")
        shown.append(rows(page, "Interactions"))
    assert [row.rpartition("\t")[2] for each in shown for row in each] == ids(walk.url, order="desc")
    assert len(shown) == 4
    for expected in (*reversed(shown[:-1]),):
        click(page, "link", "Previous")
        assert rows(page, "Interactions") == expected
    expect(page.get_by_role("link", name="Previous", exact=True)).to_have_attribute("aria-disabled", "true")
    click(page, "link", "Last")
    assert rows(page, "Interactions")[-1] == shown[-1][-1]
    click(page, "link", "First")
    assert rows(page, "Interactions") == shown[0]
    assert "1: /schemagroups/sensors" in walk.go("/ui/timeline?limit=3").locator("main").inner_text()


def test_filters(walk: Walk) -> None:
    """UI-48, UI-96: path, caller, id and times filter rows, and downloads have all matching rows."""
    page = walk.go("/ui/timeline")
    page.get_by_role("textbox", name="Caller", exact=True).fill("nobody")
    click(page, "button", "Apply")
    expect(page.get_by_text("Nothing matches these filters.")).to_be_visible()
    click(page, "link", "Clear")
    newest = ids(walk.url, order="desc")[0]
    page.get_by_role("textbox", name="Correlation id", exact=True).fill(newest)
    click(page, "button", "Apply")
    assert len(rows(page, "Interactions")) == 1
    page.get_by_label("Until", exact=True).fill("2020-01-01T00:00:00")
    click(page, "button", "Apply")
    expect(page.get_by_role("table", name="Interactions")).to_have_count(0)
    page = walk.go(f"/ui/timeline?path={GROUP}&limit=2")
    download = page.get_by_role("link", name="CSV", exact=True).get_attribute("href")
    assert download is not None and download.startswith(walk.url)
    found = [*csv.DictReader(io.StringIO(httpx.get(download).text))]
    assert len(found) == 8 and {row["xid"] for row in found} == {GROUP}


def test_times_are_those_of_the_browser(browser: Browser, url: str) -> None:
    """UI-15, UI-36: a typed time is in the browser's time zone, the URL has UTC, and the field keeps the local time."""
    with walking(browser, url, timezone_id="Asia/Kolkata") as walk:
        page = walk.go("/ui/timeline")
        page.get_by_label("From", exact=True).fill("2020-01-01T05:30:00")
        click(page, "button", "Apply")
        assert "from=2020-01-01T00%3A00%3A00" in page.url
        expect(page.get_by_label("From", exact=True)).to_have_value("2020-01-01T05:30")
        assert len(rows(page, "Interactions")) == len(ids(url)) and walk.complaints == []


def test_revisions_lead_to_the_past(walk: Walk) -> None:
    """UI-86, UI-95: the links of a row use the last position of its interaction."""
    page = walk.go("/ui/timeline")
    page.get_by_role("textbox", name="Path", exact=True).fill(GROUP)
    click(page, "button", "Apply")
    revisions = httpx.get(f"{walk.url}/-/history{GROUP}?order=desc").json()
    assert len(rows(page, "Revisions")) == len(revisions)
    moment = revisions[3]["last"]
    click(page, "link", f"As of {moment}")
    expect(page.get_by_role("status").filter(has_text="Read only")).to_contain_text(f"As of position {moment},")
    expect(page.locator("main")).to_contain_text("2 times")
    walk.go(f"/ui/timeline?path={GROUP}")
    click(page, "link", f"Restore {moment}")
    expect(page.get_by_role("table", name="Events", exact=True)).to_contain_text(GROUP)


def test_deleted_entities_are_found(walk: Walk) -> None:
    """UI-37, UI-86: the page "Not found" links to the timeline, whose rows can restore the entity."""
    page = walk.go("/ui/explore/schemagroups/gone")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    page.locator("main").get_by_role("link", name="Timeline", exact=True).click()
    deleted, created = rows(page, "Revisions")
    assert "deleted" in deleted and "Restore" not in deleted and "Restore" in created


def test_an_interaction(walk: Walk) -> None:
    """UI-49, UI-97: the page shows events with before and after, hashes, and a link to the registry at its end."""
    interaction = httpx.get(f"{walk.url}/-/interactions?order=desc&limit=3").json()[-1]
    page = walk.go(f"/ui/interactions/{interaction['xregcorrelationid']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Interaction {interaction['xregcorrelationid']}")
    for name in ("Position", "Action", "Entity", "Changed"):
        expect(table(page, "Events").get_by_role("columnheader", name=name, exact=True)).to_be_visible()
    changed = table(page, f"Before and after of {interaction['last']}").get_by_role("row").all_inner_texts()
    assert "description\t4 times\t5 times" in changed
    for name in ("chain", "state"):
        expect(page.locator("main")).to_contain_text(interaction[name])
    click(page, "link", "Registry as of this interaction")
    assert page.url == f"{walk.url}/ui/explore/?asof={interaction['last']}"


def test_an_interaction_is_not_there_before_it_happens(walk: Walk) -> None:
    """UI-37."""
    id = ids(walk.url, order="desc")[0]
    page = walk.go(f"/ui/interactions/{id}?asof=5")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    assert len(rows(walk.go("/ui/timeline?asof=5"), "Interactions")) == 1


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_looks_of_interactions(browser: Browser, url: str, width: int) -> None:
    """UI-21, UI-22."""
    with walking(browser, url, viewport={"width": width, "height": 800}, color_scheme="dark") as walk:
        for id in ids(url):
            check_look(walk, axe_script(), f"interactions/{id}")
