"""Controls and regions have roles and names by which users and programs find them."""

from __future__ import annotations

from typing import Final, Literal

import pytest
from playwright.sync_api import Response, expect

from annals.api.ui.routes import PAGES
from tests.browser.conftest import ADMIN
from tests.support.browser import Walk, walking

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

_Role = Literal[
    "button", "checkbox", "columnheader", "combobox", "heading", "link", "navigation", "region", "table", "textbox"
]
_SCHEMAS: Final = "explore/schemagroups/sensors/schemas"
_ODD: Final = "odd:name@x~y.z"
CONTROLS: Final[dict[str, tuple[tuple[_Role, str], ...]]] = {
    # UI-42: a collection has a filter, sort links and pages
    _SCHEMAS: (
        ("heading", "schemas"),
        ("textbox", "Filter"),
        ("button", "Apply"),
        ("link", "Clear"),
        ("table", "schemas"),
        ("link", "reading"),
        ("link", "Sort by name"),
        ("navigation", "Pages"),
        ("link", "Create schema"),
    ),
    # UI-54: a new subscription has a field for each setting
    "subscriptions/new": (
        ("heading", "Create subscription"),
        *(("textbox", name) for name in ("Sink", "Types", "Filters", "Settings", "Start")),
        ("combobox", "Protocol"),
        ("button", "Preview over the past"),
        ("button", "Save"),
    ),
    # UI-58: capabilities are edited as one text
    "capabilities": (("textbox", "Capabilities"), ("button", "Preview changes"), ("button", "Save")),
    # UI-73, UI-76: an entity has these regions
    "explore/schemagroups/empty": (("region", "Attributes"), ("region", "Deprecation")),
}


@pytest.mark.parametrize(
    ("path", "role", "name"), [(path, *control) for path, controls in CONTROLS.items() for control in controls]
)
def test_a_control_is_found_by_its_role_and_name(walk: Walk, path: str, role: _Role, name: str) -> None:
    page = walk.page if walk.page.url.endswith(f"/ui/{path}") else walk.go(f"/ui/{path}")
    expect(page.get_by_role("main").get_by_role(role, name=name, exact=True).first).to_be_visible()


def test_marks_are_words(walk: Walk) -> None:
    # UI-24: marks are not shown by colour alone
    versions = walk.go(f"/ui/{_SCHEMAS}/reading").get_by_role("table", name="Versions")
    expect(versions.get_by_role("row").filter(has_text="3").last).to_contain_text("Default")
    groups = walk.go("/ui/explore/schemagroups").get_by_role("table", name="schemagroups")
    expect(groups.get_by_role("row").filter(has_text="empty")).to_contain_text("Deprecated")


def test_odd_ids_work_in_each_link(walk: Walk) -> None:
    # UI-67: ids may contain reserved characters of URLs, names any characters
    page = walk.go(f"/ui/{_SCHEMAS}")
    page.get_by_role("link", name=_ODD, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(_ODD)
    expect(page.get_by_role("region", name="Attributes")).to_contain_text("Größe Ω")
    for link, heading in (("History", "Timeline"), ("Compare", "Compare")):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        page.go_back()
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Edit {_ODD}")


#: All pages without `asof` and without parameters in their path; an export is a file.
PRESENT: Final = [
    route.template
    for route in PAGES.routes
    if not (route.takes_asof or route.writes_with_asof or "{" in route.template or route.template == "transfer/export")
]


@pytest.mark.parametrize("path", PRESENT)
def test_a_page_without_a_past_says_so(walk: Walk, path: str) -> None:
    # UI-38: the form "As of" has no controls on these pages
    form = walk.go(f"/ui/{path}").get_by_role("form", name="As of")
    expect(form).to_contain_text("Shows the present")
    expect(form.get_by_role("slider")).to_have_count(0)


def test_the_page_of_sign_in(walk: Walk, admin_url: str) -> None:
    # UI-63: a field for each kind of credential that the server accepts
    assert walk.page.context.browser is not None
    with walking(walk.page.context.browser, admin_url) as stranger:
        page = stranger.go("/ui/login?next=/ui/timeline")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        page.get_by_label("Token or API key").fill(ADMIN["Authorization"].removeprefix("Bearer "))
        page.get_by_role("button", name="Use token", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")


def test_scripts_are_small_and_cached_forever(walk: Walk) -> None:
    # UI-68: scripts are cached forever, by paths with a hash, and have at most 200 KiB in total
    sizes = dict[str, int]()

    def note(answer: Response) -> None:
        if "/ui/static/" in answer.url:
            assert "immutable" in answer.headers["cache-control"], answer.url
            if answer.url.endswith(".js"):
                sizes[answer.url] = len(answer.body())

    for path in ("", _SCHEMAS, f"{_SCHEMAS}/reading", "edit/schemagroups/sensors/schemas/reading", "transfer", "model"):
        walk.page.on("response", note)
        walk.go(f"/ui/{path}")
        walk.page.remove_listener("response", note)
    assert sizes and sum(sizes.values()) <= 200 << 10
