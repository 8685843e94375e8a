"""Users sign in at a provider with a browser, change something, and sign out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Walk, click, fill_in, walking
from tests.support.oidc_site import Site, running_site

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.uses("Node.js"), pytest.mark.timeout(120)]

SIGN_IN: Final = "Sign in with the <office>"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("provider")) as site:
        site.provider.set_accounts({"ada": {"role": "writer"}})
        yield site


@pytest.fixture
def walk(browser: Browser, site: Site, has_scripts: bool) -> Iterator[Walk]:
    with walking(browser, site.url, site.provider.issuer, java_script_enabled=has_scripts) as walk:
        # Pages of the provider load a font from the internet, which would be slow or fail.
        walk.context.route("https://fonts.googleapis.com/**", lambda route: route.fulfill(content_type="text/css"))
        yield walk


def sign_in(page: Page, name: str) -> None:
    """Fills in the forms of the provider."""
    click(page, "link", SIGN_IN)
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.locator("[type=submit]").click()
    page.get_by_role("button", name="Continue", exact=True).click()


def test_signing_in_writing_and_signing_out(walk: Walk, site: Site, has_scripts: bool) -> None:
    """ACC-50, ACC-57: sign-in returns to the requested page, with rights; after sign-out no page shows the caller."""
    group = f"by-ada-{has_scripts}".lower()
    page = walk.go("/ui/explore/schemagroups")
    sign_in(page, "ada")
    expect(page).to_have_url(f"{walk.url}/ui/explore/schemagroups")
    expect(page.get_by_role("banner")).to_contain_text("Signed in as ada")
    click(page, "link", "Create schemagroup")
    fill_in(page, schemagroupid=group)
    click(page, "button", "Save")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    history = httpx.get(f"{walk.url}/-/history/schemagroups/{group}", headers={"authorization": "Bearer t"})
    assert [entry["caller"] for entry in history.json()] == ["ada"]
    shown = page.url
    click(page, "button", "Sign out")
    assert page.url.startswith(f"{site.provider.issuer}/session/end?")
    click(page, "button", "Yes, sign me out")
    expect(page).to_have_url(f"{walk.url}/ui/login")
    click(page, "link", SIGN_IN)
    expect(page.locator("[name=login]")).to_be_visible()  # the session at the provider has ended too
    while "?next=" not in page.url:  # back past the page of the Group
        assert page.go_back() is not None
        expect(page.locator("body")).not_to_contain_text("Signed in as ada")
        expect(page.locator("body")).not_to_contain_text(group)
    page.goto(shown)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert walk.complaints == []


def test_a_refusal_at_the_provider(walk: Walk) -> None:
    """ACC-50: a user who cancels at the provider returns without a session, to a page that says so."""
    page = walk.go("/ui/")
    click(page, "link", SIGN_IN)
    page.locator("a", has_text="Cancel").click()
    expect(page.get_by_role("alert")).to_have_text("Sign-in failed.")
    assert page.url.startswith(f"{walk.url}/ui/login/callback")
    assert walk.complaints == []
