"""Pages of the present show the number of newer changes, from the feed of events, and change nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Request, Route, expect

from tests.browser.conftest import ADMIN, WRITER
from tests.support.browser import FEED, NARROW, WIDE, Walk, axe_script, walking
from tests.support.registries.sample import HOSTILE, fill
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

GROUP = "/schemagroups/sensors"
READING = f"{GROUP}/schemas/reading"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("newer")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        yield served.url


@pytest.fixture
def following(browser: Browser, url: str) -> Iterator[Walk]:
    with walking(browser, url, follows=True) as walk:
        yield walk


def change(url: str, path: str = GROUP, **attributes: Any) -> None:
    httpx.patch(f"{url}{path}", json=attributes or {"description": "again"}).raise_for_status()


def follow(walk: Walk, path: str) -> Page:
    """Opens a page, and waits until it reads the feed."""
    with walk.page.expect_response(FEED):
        return walk.go(f"/ui/{path}")


def newer(page: Page) -> Locator:
    return page.get_by_role("status").filter(has_text="newer change")


def test_newer_changes_are_counted(following: Walk) -> None:
    """UI-14, UI-15, UI-20: one status counts all newer changes; the page stays as it is until its link is followed."""
    page = follow(following, "")
    before = page.get_by_role("table", name="Recent changes", exact=True).inner_text()
    place = page.get_by_role("heading", name="Findings", exact=True).bounding_box()
    change(following.url)
    expect(newer(page)).to_have_text("1 newer change Show")
    httpx.post(f"{following.url}/schemagroups", json={"a": {}, "b": {}, HOSTILE[1:7]: {}}).raise_for_status()
    expect(newer(page)).to_have_text("2 newer changes Show")  # a request is one change, with any number of events
    assert page.get_by_role("table", name="Recent changes", exact=True).inner_text() == before
    assert page.get_by_role("heading", name="Findings", exact=True).bounding_box() == place
    shown = page.url
    newer(page).get_by_role("link", name="Show", exact=True).focus()
    page.keyboard.press("Enter")
    expect(newer(page)).to_have_count(0)
    assert page.url == shown
    assert page.get_by_role("table", name="Recent changes", exact=True).inner_text() != before
    assert following.complaints == []


@pytest.mark.parametrize(
    ("path", "counted", "ignored"),
    [
        (f"explore{READING}", READING, GROUP),
        (f"explore{READING}/versions/1", f"{READING}/versions/1", f"{READING}/versions/2"),
        (f"explore{GROUP}", f"{READING}/versions/1", "/messagegroups/sensors"),
        ("explore/schemagroups?sort=name", GROUP, "/messagegroups/sensors"),
        ("explore/", GROUP, ""),
        (f"timeline?path={READING}&caller=", READING, GROUP),
        ("timeline", "/endpoints/telemetry", ""),
    ],
)
def test_only_what_is_below_the_page_counts(following: Walk, path: str, counted: str, ignored: str) -> None:
    """The page of an entity counts changes of the entity and its descendants, a list those of its members."""
    page = follow(following, path)
    if ignored:
        change(following.url, f"{ignored}$details" if ignored.count("/") > 2 else ignored)
    change(following.url, f"{counted}$details" if counted.count("/") > 2 else counted)
    expect(newer(page)).to_have_text("1 newer change Show")
    page.wait_for_timeout(300)
    expect(newer(page)).to_have_text("1 newer change Show")


@pytest.mark.parametrize(
    "path",
    [
        "?asof=20",
        f"explore{READING}?asof=30",
        "timeline?caller=anonymous",
        "timeline?until=2020-01-01T00:00:00",
        "timeline?after=20",
        "explore/schemagroups/none",
        "model",
        f"edit{READING}",
    ],
)
def test_other_pages_follow_nothing(following: Walk, path: str) -> None:
    """Pages of the past, lists that newer changes cannot extend, and forms do not read the feed."""
    page = following.go(f"/ui/{path}")
    expect(page.locator("h1")).to_be_visible()
    assert page.locator("main[data-newer]").count() == 0


def test_a_change_while_the_page_is_read_counts(following: Walk) -> None:
    """The feed starts at the page's position, so a change between the page and its feed request is counted."""
    page = following.page

    def change_first(route: Route) -> None:
        change(following.url)
        route.continue_()

    page.route(FEED, change_first)
    following.go(f"/ui/explore{GROUP}")
    expect(newer(page)).to_have_text("1 newer change Show")


def test_a_hidden_page_reads_nothing(following: Walk) -> None:
    """A hidden page closes the stream. When it is visible again, it continues at its last position."""
    page = follow(following, "")
    change(following.url)
    expect(newer(page)).to_have_text("1 newer change Show")
    with page.expect_event("requestfailed", lambda request: bool(FEED.search(request.url))):
        set_hidden(page, True)
    change(following.url)
    page.wait_for_timeout(1500)
    expect(newer(page)).to_have_text("1 newer change Show")
    set_hidden(page, False)
    expect(newer(page)).to_have_text("2 newer changes Show")


def set_hidden(page: Page, is_hidden: bool) -> None:
    """Simulates that the user selects another tab, which a headless browser cannot do."""
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        is_hidden,
    )


@pytest.mark.parametrize(
    ("status", "is_asked_again"), [(401, False), (403, False), (404, False), (405, False), (503, True)]
)
def test_a_refusal_ends_it(following: Walk, status: int, is_asked_again: bool) -> None:
    """A page that may not read the feed stops silently; after a 503 it requests the feed again."""
    requests = list[Request]()
    page = following.page

    def refuse(route: Route) -> None:
        requests.append(route.request)
        route.fulfill(status=status) if len(requests) == 1 else route.continue_()

    page.route(FEED, refuse)
    following.go("/ui/")
    page.wait_for_timeout(1500)
    change(following.url)
    if is_asked_again:
        expect(newer(page)).to_have_text("1 newer change Show")
    page.wait_for_timeout(3000)
    assert len(requests) == 1 + is_asked_again
    assert page.get_by_role("alert").count() == 0


def test_a_connection_that_ends_is_made_again(following: Walk, tmp_path: Path) -> None:
    """EV-79: after a restart of the server, each change is counted once."""
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    with serving(database, tmp_path) as served:
        fill(served.url)
        port = served.url.rpartition(":")[2]
        following.url = served.url
        page = follow(following, "")
        change(served.url)
        expect(newer(page)).to_have_text("1 newer change Show")
    with serving(database, tmp_path, "--port", port) as served:
        change(served.url)
        expect(newer(page)).to_have_text("2 newer changes Show")


def test_very_many_changes_end_the_stream(following: Walk) -> None:
    """A page counts at most a thousand events or a hundred changes, and then closes the stream."""
    page = follow(following, "explore/schemagroups")
    many = {f"schema{number}": {"format": "x"} for number in range(600)}
    with page.expect_event("requestfailed", lambda request: bool(FEED.search(request.url))):
        httpx.post(f"{following.url}/schemagroups/sensors/schemas", json=many).raise_for_status()
    expect(newer(page)).to_have_text("1 or more newer changes Show")


def test_rights_hold_for_the_feed(browser: Browser, admin_url: str) -> None:
    """ACC-83: the stream uses the session of the page, and ends with it; then the feed is refused."""
    with walking(browser, admin_url, follows=True) as walk:
        page = walk.go("/ui/login?next=/ui/explore/")
        page.get_by_label("Token or API key").fill(WRITER["Authorization"].removeprefix("Bearer "))
        with page.expect_response(FEED) as answer:
            page.get_by_role("button", name="Use token", exact=True).click()
        assert answer.value.status == 200
        httpx.patch(f"{admin_url}{GROUP}", json={"name": "x"}, headers=ADMIN).raise_for_status()
        expect(newer(page)).to_have_text("1 newer change Show")
        cookies = {each.get("name", ""): each.get("value", "") for each in page.context.cookies()}
        with page.expect_response(FEED) as answer:  # the page asks again after the end of its stream
            own = {"sec-fetch-site": "same-origin"}
            assert httpx.post(f"{admin_url}/ui/logout", headers=own, cookies=cookies).status_code == 303
        assert answer.value.status == 401


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_looks(browser: Browser, url: str, scheme: Any, width: int) -> None:
    """UI-14, UI-21, UI-22, UI-24: the status is accessible, fits the window, and does not cover the focused element."""
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}, "reduced_motion": "reduce"}
    with walking(browser, url, follows=True, **look) as walk:
        page = follow(walk, f"explore{READING}")
        change(url, f"{READING}$details")
        expect(newer(page)).to_have_text("1 newer change Show")
        assert walk.axe(axe_script()) == [] and walk.overflow == 0 and walk.complaints == []
        box = newer(page).bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
        last = page.get_by_role("button", name="Copy as curl", exact=True)
        last.focus()
        focused = last.bounding_box()
        assert focused is not None and focused["y"] + focused["height"] <= box["y"]
