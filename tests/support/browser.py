"""A real browser for tests of pages, with the errors that it reports, and axe-core, which checks accessibility."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.support.downloads.npm import packages
from tests.support.left_out import leave_out
from tests.support.polling import until

_AXE: Final = "axe-core@4.11.0"
#: The impacts of axe-core that a page must not have (UI-21).
_SERIOUS: Final = ("serious", "critical")
#: URLs of the feed that pages of the present read.
FEED: Final = re.compile(r"/-/events\?subject=")
NARROW: Final = 360
WIDE: Final = 1280


# The default of 5 seconds is too short for a busy machine.
expect.set_options(timeout=60_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser. Skips the test if Chromium is not installed."""
    program = shutil.which("chromium") or leave_out("no browser: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def axe_script() -> str:
    """The source of axe-core. Skips the test if npm cannot download it."""
    return (packages(_AXE) / "node_modules" / "axe-core" / "axe.min.js").read_text()


@dataclass
class Walk:
    """Pages of one registry in a browser. complaints: console errors, CSP reports, and requests to other hosts.

    provider: URL of the identity provider that pages redirect to; complaints about its own pages are ignored. Empty for
    none. follows: whether pages read the feed of newer changes, so that the network is never idle.
    """

    context: BrowserContext
    url: str
    page: Page
    complaints: list[str] = field(default_factory=list)
    provider: str = ""
    follows: bool = False

    def go(self, path: str) -> Page:
        """Shows a page. path: below the registry's root."""
        self.page.goto(self.url + path)  # on a busy machine, the network is idle before scripts have run
        if not self.follows:
            self.page.wait_for_load_state("networkidle")
        return self.page

    def axe(self, script: str) -> list[str]:
        """The violations on the page that axe-core rates serious or critical."""
        # Playwright's `evaluate` is exempt from the page's CSP, which forbids other scripts.
        self.page.evaluate(script + "; null")
        found: list[dict[str, Any]] = self.page.evaluate("axe.run().then(result => result.violations)")
        return [
            f"{each['id']}: {node['target']} {node.get('failureSummary', '')}"
            for each in found
            if each["impact"] in _SERIOUS
            for node in each["nodes"]
        ]

    @property
    def overflow(self) -> int:
        """The number of pixels by which the page is wider than the window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))

    def picture(self, file: Path) -> None:
        """Stores the whole page as a picture, for a developer to look at."""
        self.page.screenshot(path=str(file), full_page=True)


def check_look(walk: Walk, axe: str, path: str) -> None:
    """Checks what all pages have in common. axe: the source of axe-core. path: below `/ui/`."""
    page = walk.go(f"/ui/{path}")
    assert walk.axe(axe) == []
    assert walk.overflow == 0 and walk.complaints == []
    heading = page.locator("h1")
    expect(heading).to_have_count(1)
    assert page.title() == f"{heading.inner_text()} - annals"
    for landmark in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(landmark)).to_have_count(1)


@contextmanager
def walking(browser: Browser, url: str, provider: str = "", *, follows: bool = False, **options: Any) -> Iterator[Walk]:
    """A walk in its own browser context.

    provider, follows: see `Walk`. options: of the browser context, such as `java_script_enabled`.
    """
    context = browser.new_context(**options)
    if not follows:
        context.route(FEED, lambda route: route.fulfill(status=204))
    page = context.new_page()
    walk = Walk(context, url, page, provider=provider, follows=follows)
    page.on("console", lambda message: _note_console(walk, message))
    page.on("pageerror", lambda error: walk.complaints.append(f"error of a script: {error}"))
    page.on("request", lambda request: _note_request(walk, request))
    try:
        yield walk
    finally:
        context.close()


def _note_console(walk: Walk, message: ConsoleMessage) -> None:
    if _is_of_provider(walk, message.page.url if message.page else ""):
        return
    if message.type in ("error", "warning") and "status of 4" not in message.text:
        walk.complaints.append(f"console: {message.text}")


def _note_request(walk: Walk, request: Request) -> None:
    if _is_of_provider(walk, request.frame.url):
        return
    origin = urlsplit(request.url)
    known = (urlsplit(walk.url).netloc, urlsplit(walk.provider).netloc)
    if origin.scheme not in ("data", "blob") and origin.netloc not in known:
        walk.complaints.append(f"a request elsewhere: {request.url}")


def _is_of_provider(walk: Walk, url: str) -> bool:
    return bool(walk.provider) and urlsplit(url).netloc == urlsplit(walk.provider).netloc


def click(page: Page, role: Literal["button", "link"], name: str) -> None:
    """Presses a button or follows a link, and waits until the next page is loaded, because its scripts change it."""
    page.get_by_role(role, name=name, exact=True).click()
    page.wait_for_load_state()


def wait_for_comparisons(url: str, *paths: str) -> None:
    """Waits until pages that compare by meaning have a result: each waits only briefly, but later ones find it.

    url: of a registry. paths: what is compared, below `/ui/compare/`, with a query.
    """
    for path in paths:
        until(partial(_is_found, f"{url}/ui/compare/{path}&of=meaning"))


def _is_found(url: str) -> bool:
    return httpx.get(url).is_success


def fill_in(page: Page, **values: str) -> None:
    """Fills text boxes, given by name."""
    for name, value in values.items():
        page.get_by_role("textbox", name=name, exact=True).fill(value)


def head(url: str) -> int:
    """The last position of the log of a registry."""
    return int(httpx.get(f"{url}/-/log/head").json()["position"])
