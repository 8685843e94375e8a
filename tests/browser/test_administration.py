"""Pages of administrators: API keys, grants, settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import ADMIN, WRITER
from tests.support.browser import NARROW, WIDE, Walk, axe_script, check_look, click, fill_in, walking

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

#: Pages for administrators only.
PATHS: Final = ("keys", "grants", "settings")


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def walk(request: pytest.FixtureRequest, browser: Browser, admin_url: str) -> Iterator[Walk]:
    with walking(browser, admin_url, java_script_enabled=request.param, extra_http_headers=ADMIN) as walk:
        yield walk


def table(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name, exact=True)


def headings(page: Page, name: str) -> list[str]:
    return table(page, name).get_by_role("columnheader").all_inner_texts()


def choose_role(page: Page, role: str) -> None:
    page.get_by_role("combobox", name="Role", exact=True).select_option(role)


def shown_key(page: Page) -> str:
    region = page.get_by_role("region", name="New key", exact=True)
    return region.get_by_role("textbox", name="Key", exact=True).input_value()


def caller(url: str, key: str) -> httpx.Response:
    return httpx.get(f"{url}/-/whoami", headers={"Authorization": f"Bearer {key}"})


def test_a_key_from_beginning_to_end(walk: Walk, request: pytest.FixtureRequest) -> None:
    """UI-16, UI-39, UI-59, UI-121: a key is created, shown once, used, rotated with a grace time, and revoked."""
    name = "build-" + request.node.callspec.id
    page = walk.go("/ui/keys")
    fill_in(page, Name=name, Groups="/schemagroups/team-*=writer\n\n/schemagroups/sensors = reader")
    choose_role(page, "reader")
    page.get_by_label("Expires", exact=True).fill("2026-12-31T12:00:00")
    click(page, "button", "Create key")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_contain_text("1 events recorded")
    key = shown_key(page)
    who = caller(walk.url, key).json()
    assert (who["name"], who["role"]) == (f"key:{name}", "reader")
    assert who["groups"] == {"/schemagroups/team-*": "writer", "/schemagroups/sensors": "reader"}
    assert headings(page, "API keys")[:5] == ["Name", "Role", "Groups", "Expires", "Last used"]
    page.reload()
    expect(page.get_by_role("region", name="New key", exact=True)).to_have_count(0)
    assert key not in page.content() and page.context.cookies() == []
    click(page, "link", f"Rotate {name}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Rotate {name}")
    page.get_by_role("spinbutton", name="Grace seconds", exact=True).fill("60")
    click(page, "button", "Rotate")
    rotated = shown_key(page)
    assert [caller(walk.url, each).status_code for each in (key, rotated)] == [200, 200] and rotated != key
    click(page, "link", f"Revoke {name}")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Revoke {name}")
    click(page, "link", "Cancel")
    click(page, "link", f"Revoke {name}")
    click(page, "button", "Revoke")
    expect(page.get_by_role("rowheader", name=name, exact=True)).to_have_count(0)
    assert [caller(walk.url, each).status_code for each in (key, rotated)] == [401, 401]


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"Name": "caller:a"}, "Name", "reserved"),
        ({"Name": "a", "Groups": "/schemagroups/a"}, "Groups", "it is not one of: reader"),
        ({"Name": "a", "Groups": "nothing=writer"}, "Groups", "no place"),
        ({"Name": "a"}, "Role", "a role is needed"),
    ],
)
def test_refused_keys_keep_what_was_typed(walk: Walk, values: dict[str, str], field: str, words: str) -> None:
    """UI-26, UI-81."""
    page = walk.go("/ui/keys")
    fill_in(page, **values)
    click(page, "button", "Create key")
    expect(page.get_by_role("alert")).to_be_focused()
    refused = page.get_by_label(field, exact=True)
    expect(refused).to_have_attribute("aria-invalid", "true")
    assert words in (page.locator("p.error").inner_text())
    for name, value in values.items():
        expect(page.get_by_role("textbox", name=name, exact=True)).to_have_value(value)


def test_grants(walk: Walk) -> None:
    """UI-39, UI-60: a grant is created, listed, and revoked; a page of the past still lists it."""
    page = walk.go("/ui/grants")
    fill_in(page, Subject="caller:carol", Place="/schemagroups/sensors")
    choose_role(page, "writer")
    click(page, "button", "Grant")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert headings(page, "Grants")[:5] == ["Subject", "Role", "Place", "Expires", "By"]
    grants = httpx.get(f"{walk.url}/-/grants", headers=ADMIN).json()
    assert [(each["subject"], each["role"], each["at"]) for each in grants] == [
        ("caller:carol", "writer", "/schemagroups/sensors")
    ]
    position = httpx.get(f"{walk.url}/-/log/head", headers=ADMIN).json()["position"]
    click(page, "link", "Revoke caller:carol at /schemagroups/sensors")
    expect(page.get_by_role("heading", level=1)).to_have_text("Revoke caller:carol at /schemagroups/sensors")
    click(page, "button", "Revoke")
    assert httpx.get(f"{walk.url}/-/grants", headers=ADMIN).json() == []
    page = walk.go(f"/ui/grants?asof={position}")
    expect(table(page, "Grants")).to_contain_text("caller:carol")
    expect(page.get_by_role("button", name="Grant", exact=True)).to_have_count(0)


def test_a_refused_grant(walk: Walk) -> None:
    page = walk.go("/ui/grants")
    fill_in(page, Subject="carol")
    click(page, "button", "Grant")
    expect(page.get_by_role("textbox", name="Subject", exact=True)).to_have_attribute("aria-invalid", "true")
    click(page, "link", "Subject")
    expect(page.get_by_role("textbox", name="Subject", exact=True)).to_be_focused()


def test_settings(walk: Walk) -> None:
    """UI-61, UI-122: the page lists each setting with its source, and no secret."""
    page = walk.go("/ui/settings")
    assert headings(page, "Settings") == ["Name", "Value", "Source", "Meaning"]
    shown = {name: rest for name, *rest in map(_cells, table(page, "Settings").locator("tbody tr").all())}
    assert shown["ANNALS_TOKENS"][:2] == ["***", "environment"]
    assert shown["ANNALS_DATABASE"][1] == "flag" and shown["ANNALS_DATABASE"][0].startswith("sqlite:///")
    assert shown["ANNALS_WORKERS"][:2] == ["1", "default"]
    assert "admin-token" not in page.content()
    expect(page.get_by_role("form", name="As of", exact=True)).to_contain_text("Shows the present")
    answers = [httpx.get(f"{walk.url}/-/settings", headers=headers) for headers in (ADMIN, WRITER, {})]
    assert [answer.status_code for answer in answers] == [200, 403, 401]
    assert "admin-token" not in answers[0].text


def _cells(row: Locator) -> list[str]:
    return row.locator("th, td").all_inner_texts()


@pytest.mark.parametrize("path", PATHS)
def test_others_are_refused(browser: Browser, admin_url: str, path: str) -> None:
    """UI-17: pages for administrators are 403 for other callers, whose navigation has no link to them."""
    with walking(browser, admin_url, extra_http_headers=WRITER) as walk:
        page = walk.go(f"/ui/{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
        expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="API keys")).to_have_count(0)
    assert httpx.get(f"{admin_url}/ui/{path}", headers=WRITER).status_code == 403


def test_a_reload_makes_no_key(admin_url: str) -> None:
    """UI-16: the response to the form is a redirect, and a write with `asof` is refused."""
    form = {"name": "reloaded", "role": "reader"}
    made = httpx.post(f"{admin_url}/ui/keys", data=form, headers=ADMIN)
    assert made.status_code == 303 and "annals-new-key=annals_" in made.headers["set-cookie"]
    assert "HttpOnly" in made.headers["set-cookie"] and "Max-Age=60" in made.headers["set-cookie"]
    assert httpx.post(f"{admin_url}/ui/keys?asof=5", data=form, headers=ADMIN).status_code == 400
    forged = httpx.get(f"{admin_url}/ui/keys", headers={**ADMIN, "cookie": "annals-new-key=annals_forged"})
    assert "New key" not in forged.text


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_looks(browser: Browser, admin_url: str, scheme: str, width: int) -> None:
    """UI-21, UI-22."""
    name = f"looks-{scheme}-{width}"
    key = httpx.post(f"{admin_url}/-/keys", json={"name": name, "role": "reader"}, headers=ADMIN).json()["id"]
    viewport = {"width": width, "height": 800}
    with walking(browser, admin_url, extra_http_headers=ADMIN, color_scheme=scheme, viewport=viewport) as walk:
        for path in (*PATHS, f"keys/{key}/rotate", f"keys/{key}/revoke", "keys?asof=5"):
            check_look(walk, axe_script(), path)
