"""Pages for signed-in users: the banner, controls by role, and a session that ends during an edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Walk, walking
from tests.support.registries.sample import fill
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

TOKENS: Final = {
    "ada": {"name": "ada", "role": "admin"},
    "rita": {"name": "rita", "role": "reader"},
    "gina": {"name": "gina", "groups": {"/schemagroups/sensors": "writer"}},
    "nemo": {"name": "nemo"},
}
SCHEMA: Final = "/schemagroups/sensors/schemas/reading"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("sessions")
    database = f"sqlite:///{home / 'annals.db'}"
    with serving(database, home) as served:
        fill(served.url)
    with serving(database, home, ANNALS_TOKENS=json.dumps(TOKENS)) as served:
        yield served.url


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def walk(request: pytest.FixtureRequest, browser: Browser, url: str) -> Iterator[Walk]:
    with walking(browser, url, java_script_enabled=request.param) as walk:
        yield walk


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token or API key", exact=True).fill(token)
    page.get_by_role("button", name="Use token", exact=True).click()


@pytest.mark.parametrize(
    ("token", "links"),
    [("ada", {"Edit", "Delete", "New version"}), ("rita", set()), ("gina", {"Edit", "Delete", "New version"})],
)
def test_controls_by_role(walk: Walk, token: str, links: set[str]) -> None:
    """UI-17, UI-30, UI-33, UI-66: sign-in returns to the page, which has only the controls that the caller may use."""
    page = walk.go(f"/ui/explore{SCHEMA}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    sign_in(page, token)
    expect(page).to_have_url(f"{walk.url}/ui/explore{SCHEMA}")
    expect(page.get_by_role("banner")).to_contain_text(f"Signed in as {token}")
    for name in ("Edit", "Delete", "New version"):
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(int(name in links))
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_hidden_groups(walk: Walk) -> None:
    """ACC-79: a caller with a role on one Group sees only that Group."""
    page = walk.go("/ui/")
    sign_in(page, "gina")
    expect(page.get_by_role("region", name="Counts", exact=True)).to_contain_text("1 schemagroups")
    page = walk.go("/ui/explore/schemagroups")
    expect(page.get_by_role("table", name="schemagroups", exact=True).get_by_role("rowheader")).to_have_text(
        ["sensors"]
    )
    page = walk.go("/ui/explore/schemagroups/empty")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")


def test_a_caller_without_a_role(walk: Walk) -> None:
    """UI-66: the caller is signed in, and no page is allowed."""
    page = walk.go("/ui/")
    sign_in(page, "nemo")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
    expect(page.get_by_role("banner")).to_contain_text("nemo")
    expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()


def test_wrong_credentials(walk: Walk) -> None:
    """UI-66: the page says that sign-in failed, without a reason."""
    page = walk.go("/ui/login")
    sign_in(page, "wrong")
    expect(page.get_by_role("alert")).to_have_text("Sign-in failed.")


def test_a_session_that_ends_while_editing(walk: Walk) -> None:
    """UI-87: nothing is written, and after the next sign-in the form still has the typed values."""
    page = walk.go(f"/ui/edit{SCHEMA}")
    sign_in(page, "ada")
    page.get_by_role("textbox", name="name", exact=True).fill("typed before")
    page.get_by_role("textbox", name="labels", exact=True).fill('{"typed": "too"}')
    walk.context.clear_cookies(name="annals")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    sign_in(page, "wrong")
    expect(page.get_by_role("alert")).to_have_text("Sign-in failed.")
    sign_in(page, "ada")
    expect(page.get_by_role("heading", level=1)).to_have_text("Edit reading")
    expect(page.get_by_role("textbox", name="name", exact=True)).to_have_value("typed before")
    headers = {"authorization": "Bearer ada"}
    assert "name" not in httpx.get(f"{walk.url}{SCHEMA}$details", headers=headers).json()
    page.get_by_role("textbox", name="name", exact=True).fill("")
    page.get_by_role("textbox", name="labels", exact=True).fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Nothing")).to_have_text("Nothing to save.")


def test_a_session_that_ends_while_making_a_subscription(walk: Walk) -> None:
    """UI-54, UI-87: the form is there again, except for the credential, which no page repeats."""
    page = walk.go("/ui/subscriptions/new")
    sign_in(page, "ada")
    page.get_by_role("textbox", name="Sink", exact=True).fill("https://example.com/typed")
    page.get_by_role("textbox", name="Filters", exact=True).fill("[\n]")
    page.get_by_label("Credential", exact=True).fill('{"secret": "typed too"}')
    walk.context.clear_cookies(name="annals")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The session has ended, and nothing has been saved.")
    assert "typed too" not in page.content()
    sign_in(page, "ada")
    expect(page.get_by_role("heading", level=1)).to_have_text("Create subscription")
    expect(page.get_by_role("textbox", name="Sink", exact=True)).to_have_value("https://example.com/typed")
    expect(page.get_by_role("textbox", name="Filters", exact=True)).to_have_value("[\n]")
    expect(page.get_by_label("Credential", exact=True)).to_have_value("")
    expect(page.get_by_role("main")).to_contain_text("Type the credential again")
