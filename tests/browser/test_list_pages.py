"""Lists of many API keys, grants and links are paginated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import ADMIN
from tests.support.browser import NARROW, WIDE, axe_script, check_look, walking
from tests.support.registries.sample import HOSTILE, fill
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(180)]

#: The number of members of each list; tests/api/access/test_id_pages.py has a thousand.
COUNTS: Final = {"keys": 55, "grants": 120, "links": 51}
TABLES: Final = {"keys": "API keys", "grants": "Grants", "links": "Links"}
#: The name of one member, which pages must escape.
NOTED: Final = {"keys": HOSTILE, "grants": f"caller:{HOSTILE}"}


def body(name: str, number: int) -> dict[str, Any]:
    """The body that creates a member. The grants of one subject are limited, so there are several subjects."""
    match name:
        case "keys":
            return {"name": HOSTILE if number == 0 else f"key {number}", "role": "reader"}
        case "grants":
            subject = NOTED["grants"] if number == 0 else f"caller:c{number % 50}"
            return {"id": f"g{number:04}", "subject": subject, "role": "reader", "at": f"/schemagroups/g{number}"}
        case _:
            scope = {"groups": [f"/schemagroups/copy{number}"]}
            return {"id": f"l{number:02}", "url": f"https://93.184.216.34/r{number}", "scope": scope, "enabled": False}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("lists")
    settings = {
        "ANNALS_TOKENS": json.dumps({"admin-token": {"name": "alice", "role": "admin"}}),
        "ANNALS_API_KEYS": "true",
    }
    with (
        serving(f"sqlite:///{home / 'annals.db'}", home, **settings) as served,
        httpx.Client(base_url=served.url, headers=ADMIN, timeout=60) as client,
    ):
        fill(served.url, headers=ADMIN)
        with ThreadPoolExecutor(8) as pool:
            made = [
                pool.submit(client.post, f"/-/{name}", json=body(name, number))
                for name, count in COUNTS.items()
                for number in range(count)
            ]
        assert {each.result().status_code for each in made} == {201}
        yield served.url


def first_cells(page: Page, name: str) -> list[str]:
    return page.get_by_role("table", name=TABLES[name], exact=True).locator("tbody th").all_inner_texts()


@pytest.mark.parametrize("name", COUNTS)
def test_all_pages(browser: Browser, url: str, has_scripts: bool, name: str) -> None:
    """UI-13, UI-18, UI-72: 50 rows on a page, every member once, and links to the next and the first page."""
    with walking(browser, url, java_script_enabled=has_scripts, extra_http_headers=ADMIN) as walk:
        page = walk.go(f"/ui/{name}")
        first = first_cells(page, name)
        found = [*first]
        assert len(first) == 50
        pages = page.get_by_role("navigation", name="Pages", exact=True)
        expect(pages.get_by_role("link", name="First", exact=True)).to_have_attribute("aria-disabled", "true")
        while pages.get_by_role("link", name="Next", exact=True, disabled=False).count():
            pages.get_by_role("link", name="Next", exact=True).focus()
            with page.expect_navigation():
                page.keyboard.press("Enter")
            rows = first_cells(page, name)
            assert rows[0] not in first
            found += rows
        assert len(found) == COUNTS[name]
        if name in NOTED:
            assert NOTED[name] in found
        pages.get_by_role("link", name="First", exact=True).click()
        expect(page.get_by_role("table", name=TABLES[name], exact=True).locator("tbody th").first).to_have_text(
            first[0]
        )
        assert walk.complaints == []


def test_a_few_have_no_pages(browser: Browser, admin_url: str) -> None:
    with walking(browser, admin_url, extra_http_headers=ADMIN) as walk:
        for name in COUNTS:
            expect(walk.go(f"/ui/{name}").get_by_role("navigation", name="Pages")).to_have_count(0)


def test_a_new_key_is_named_on_any_page(browser: Browser, url: str) -> None:
    """UI-121: the page names a new key, even if its random id puts it on another page of the list."""
    with walking(browser, url, extra_http_headers=ADMIN) as walk:
        page = walk.go("/ui/keys")
        page.get_by_role("textbox", name="Name", exact=True).fill("the new one")
        page.get_by_role("combobox", name="Role", exact=True).select_option("reader")
        page.get_by_role("button", name="Create key", exact=True).click()
        expect(page.get_by_role("region", name="New key", exact=True)).to_contain_text(
            "This is the key of the new one."
        )


@pytest.mark.parametrize(("scheme", "width"), [("light", NARROW), ("dark", WIDE)])
def test_looks(browser: Browser, url: str, scheme: Any, width: int) -> None:
    """UI-21, UI-22."""
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with walking(browser, url, extra_http_headers=ADMIN, **look) as walk:
        for name in COUNTS:
            check_look(walk, axe_script(), name)
