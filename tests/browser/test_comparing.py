"""Pages that compare two Versions, or one entity at two moments, by text, meaning and attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Walk, click, wait_for_comparisons, walking
from tests.support.registries.sample import HOSTILE, fill
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

GROUP: Final = "schemagroups/sensors/schemas"
READING: Final = f"{GROUP}/reading"
#: Two Versions of a schema with many lines. The second has another enum value and one more property.
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "1": {**{f"f{number}": {"type": "string"} for number in range(10)}, "state": {"enum": ["new"]}},
    "2": {
        **{f"f{number}": {"type": "string"} for number in range(10)},
        "state": {"enum": ["new", "paid"]},
        HOSTILE: {},
    },
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("comparing")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        for id, properties in FIELDS.items():
            text = json.dumps({"type": "object", "properties": properties}, indent=1)
            headers = {"xRegistry-format": "JsonSchema/draft-07", "content-type": "application/json"}
            answer = httpx.put(f"{served.url}/{GROUP}/order/versions/{id}", content=text, headers=headers)
            assert answer.is_success, answer.text
        orders = (f"{GROUP}/order?left=1&right=2", f"{GROUP}/order?left=2&right=1")
        wait_for_comparisons(served.url, f"{READING}?left=1&right=3", *orders)
        yield served.url


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def walk(request: pytest.FixtureRequest, browser: Browser, url: str) -> Iterator[Walk]:
    with walking(browser, url, java_script_enabled=request.param) as walk:
        yield walk


def rows(page: Page, table: str) -> list[list[str]]:
    """The cells of each row, without empty ones."""
    found = page.get_by_role("table", name=table, exact=True).locator("tbody tr").all()
    return [[text for cell in row.locator("td, th").all() if (text := cell.inner_text().strip())] for row in found]


def follow(page: Page, name: str) -> None:
    page.get_by_role("main").get_by_role("link", name=name, exact=True).click()
    page.wait_for_load_state()


def changes(page: Page) -> list[list[str]]:
    """The kind of each change, its path, and the three verdicts."""
    return [
        [row[0], row[1].split("\n")[0], *(cell.split(" ")[0] for cell in row[-3:])] for row in rows(page, "Changes")
    ]


def test_two_versions(walk: Walk) -> None:
    """UI-47, UI-90 to UI-92: the default Version is compared with its ancestor; all choices are in the URL."""
    page = walk.go(f"/ui/compare/{GROUP}/order")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    expect(page.get_by_role("combobox", name="Left version", exact=True)).to_have_value("1")
    expect(page.get_by_role("combobox", name="Right version", exact=True)).to_have_value("2")
    words = [row for row in rows(page, "Text difference") if set(row) & {"Added", "Changed", "Removed"}]
    assert any("Added" in row and row[-1] == f'"{HOSTILE}": {{}}' for row in words), words
    assert any("unchanged lines" in row[0] for row in rows(page, "Text difference"))
    follow(page, "Inline")
    assert "view=inline" in page.url
    inline = rows(page, "Text difference")
    assert any("Added" in row and '"paid"' in row[-1] for row in inline)
    assert not any("Changed" in row for row in inline)
    follow(page, "Meaning")
    assert changes(page) == [
        ["Changed", "state", "OK", "Breaking", "Breaking"],
        ["Added", HOSTILE, "OK", "OK", "OK"],
    ]
    expected = ["Compatible", "Compatible", *["Breaking"] * 4]
    assert [row[1] for row in rows(page, "Levels")] == expected
    assert "reader-value-missing" in page.get_by_role("table", name="Changes", exact=True).inner_text()
    page.get_by_role("combobox", name="Left version", exact=True).select_option("2")
    page.get_by_role("combobox", name="Right version", exact=True).select_option("1")
    click(page, "button", "Compare")
    assert "left=2" in page.url and "right=1" in page.url and "of=meaning" in page.url
    assert [row[0] for row in changes(page)] == ["Changed", "Removed"]
    follow(page, "Attributes")
    assert ["isdefault", "true", "false"] in [row[2:] for row in rows(page, "Attributes")]
    assert walk.complaints == []


def test_the_meaning_is_that_of_the_api(walk: Walk) -> None:
    """UI-93: the page, its CSV file and its link "Raw JSON" have the same changes as the API."""
    page = walk.go(f"/ui/compare/{READING}?left=1&right=3&of=meaning")
    raw = page.get_by_role("link", name="Raw JSON", exact=True).get_attribute("href")
    found = httpx.get(str(raw)).json()
    assert (
        [row[1] for row in changes(page)] == [each["path"] for each in found["changes"]] == ["temperature", "takenAt"]
    )
    href = page.get_by_role("main").get_by_role("link", name="CSV", exact=True).get_attribute("href")
    assert httpx.get(str(href)).text.count("\r\n") == len(found["changes"]) + 1


def test_two_moments(walk: Walk, url: str) -> None:
    """UI-90, UI-94: an entity is compared with its past state; without a moment the page asks for one."""
    page = walk.go("/ui/compare/schemagroups/sensors")
    expect(page.get_by_role("status").filter(has_text="Give a left moment")).to_be_visible()
    expect(page.get_by_role("combobox", name="Left version", exact=True)).to_have_count(0)
    history = httpx.get(f"{url}/-/history/schemagroups/sensors").json()
    page.get_by_role("textbox", name="Left moment", exact=True).fill(history[0]["xregcorrelationid"])
    click(page, "button", "Compare")
    found = {row[2]: row[3:] for row in rows(page, "Attributes") if row[0] == "/schemagroups/sensors"}
    assert found["description"] == ["Readings of all sensors.", "Readings of all sensors of the field."]
    expect(page.get_by_role("main")).to_contain_text("as of position")
    page.get_by_role("textbox", name="Right moment", exact=True).fill(history[0]["xregcorrelationid"])
    click(page, "button", "Compare")
    expect(page.get_by_role("status").filter(has_text="No difference")).to_be_visible()


def test_what_cannot_be_compared(walk: Walk) -> None:
    """UI-27, UI-91: pages explain why there is no difference to show."""
    page = walk.go(f"/ui/compare/{GROUP}/picture?of=meaning")
    expect(page.get_by_role("alert")).to_contain_text("PNG")
    page = walk.go(f"/ui/compare/{GROUP}/picture")
    expect(page.get_by_role("status").filter(has_text="is not text")).to_be_visible()
    page = walk.go(f"/ui/compare/{READING}?left=2&right=2")
    expect(page.get_by_role("status").filter(has_text="No difference")).to_be_visible()
    page = walk.go(f"/ui/compare/{READING}?left=99")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    page = walk.go(f"/ui/compare/{READING}?of=nothing")
    expect(page.get_by_role("heading", level=1)).to_have_text("Bad request")


def test_selected_versions(walk: Walk) -> None:
    """UI-75: two Versions are selected on the page of their Resource."""
    page = walk.go(f"/ui/explore/{READING}")
    for id in ("1", "3"):
        page.get_by_role("checkbox", name=f"Select {id}", exact=True).check()
    page.get_by_role("button", name="Compare selected", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    expect(page.get_by_role("combobox", name="Left version", exact=True)).to_have_value("1")
    expect(page.get_by_role("combobox", name="Right version", exact=True)).to_have_value("3")


def test_the_past(walk: Walk, url: str) -> None:
    """UI-37, UI-90: `asof` replaces the present in a comparison."""
    history = httpx.get(f"{url}/-/history/schemagroups/sensors").json()
    first, last = history[0]["xregcorrelationid"], history[-1]["xregcorrelationid"]
    page = walk.go(f"/ui/compare/schemagroups/sensors?asof={last}&leftasof={first}")
    assert "description" in [row[2] for row in rows(page, "Attributes")]
    page = walk.go(f"/ui/compare/{READING}?asof=1")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
