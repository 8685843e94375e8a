"""Subscriptions and links in a browser: their pages after failed deliveries, and a replay by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import NARROW, WIDE, axe_script, walking
from tests.support.polling import until
from tests.support.serving import serving
from tests.support.webhooks import webhooks

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(180)]

TOKENS: Final = {"root": {"name": "root", "role": "admin"}}
AUTHORIZATION: Final = {"Authorization": "Bearer root"}
HOSTILE: Final = "<script>alert(1)</script>"
SUBSCRIPTION: Final[dict[str, Any]] = {"protocol": "HTTP", "types": ["io.xregistry.group.created"]}
LINK: Final = {"url": "http://127.0.0.1:9/r", "mode": "pull"}
PATHS: Final = (
    "subscriptions",
    "subscriptions/{id}",
    "subscriptions/{id}?from=1",
    "subscriptions/{id}/edit",
    "subscriptions/{id}/delete",
    "subscriptions/{id}/discard/{sequence}",
    "links",
    "links/copy",
    "links/copy/promote",
    "links/copy/repair",
)


@dataclass
class Delivered:
    """A registry with a subscription that has a dead letter."""

    url: str
    id: str
    sequence: str


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivered]:
    home: Path = tmp_path_factory.mktemp("deliveries")
    (home / "tokens.json").write_text(json.dumps(TOKENS))
    settings = {
        "ANNALS_TOKENS": str(home / "tokens.json"),
        "ANNALS_SINKS_ALLOW": "127.0.0.1",
        "ANNALS_SINKS_PLAINTEXT": "true",
        "ANNALS_SINKS_VALIDATION": "off",
    }
    with webhooks() as sinks, serving(f"sqlite:///{home / 'annals.db'}", home, **settings) as served:
        sinks.answer = lambda path, event: 400 if event["subject"].endswith("/bad") else 204
        with httpx.Client(base_url=served.url, headers=AUTHORIZATION, timeout=30) as client:
            created = client.post("/subscriptions", json={**SUBSCRIPTION, "sink": f"{sinks.url}/s"})
            assert created.is_success, created.text
            path = f"/subscriptions/{created.json()['id']}"
            for group in ("good", "bad", "third"):
                client.put(f"/schemagroups/{group}", json={"name": HOSTILE}).raise_for_status()
            client.put("/-/links/copy", json=LINK).raise_for_status()
            letters = until(lambda: client.get(f"{path}/deadletters").json())
        yield Delivered(served.url, created.json()["id"], letters[0]["sequence"])


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_script()


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", WIDE),
        ("dark", NARROW),
        pytest.param("light", NARROW, marks=pytest.mark.long),
        pytest.param("dark", WIDE, marks=pytest.mark.long),
    ],
)
def test_looks(browser: Browser, delivered: Delivered, axe: str, scheme: Any, width: int) -> None:
    """UI-14, UI-21, UI-22, UI-29."""
    look = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with walking(browser, delivered.url, extra_http_headers=AUTHORIZATION, **look) as walk:
        for template in PATHS:
            page = walk.go("/ui/" + template.format(id=delivered.id, sequence=delivered.sequence))
            assert walk.axe(axe) == [], template
            assert walk.overflow == 0, template
            assert walk.complaints == [], template
            expect(page.locator("h1")).to_have_count(1)


def test_a_replay_by_keyboard(browser: Browser, delivered: Delivered) -> None:
    """UI-13, UI-20, UI-112: a replay works without scripts and with the keyboard alone."""
    with walking(browser, delivered.url, extra_http_headers=AUTHORIZATION, java_script_enabled=False) as walk:
        page = walk.go(f"/ui/subscriptions/{delivered.id}")
        page.get_by_role("spinbutton", name="From position", exact=True).fill("1")
        page.keyboard.press("Tab")
        expect(page.get_by_role("spinbutton", name="To position", exact=True)).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Count", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").filter(has_text="3 events will be sent again")).to_be_visible()
        page.get_by_role("button", name="Replay 3 events", exact=True).press("Enter")
        expect(page.get_by_role("status").filter(has_text="Saved. 1 events recorded.")).to_be_visible()


def test_dead_letters_and_pauses(browser: Browser, delivered: Delivered) -> None:
    """UI-55: the page has controls, by role and name, for deliveries, dead letters, pause and resume."""
    with walking(browser, delivered.url, extra_http_headers=AUTHORIZATION) as walk:
        page = walk.go(f"/ui/subscriptions/{delivered.id}")
        expect(page.get_by_role("region", name="Delivery state", exact=True)).to_be_visible()
        for name in ("Attempts", "Dead letters"):
            expect(page.get_by_role("table", name=name, exact=True)).to_be_visible()
        expect(page.get_by_role("button", name=f"Redeliver {delivered.sequence}", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name=f"Discard {delivered.sequence}", exact=True)).to_be_visible()
        page.get_by_role("button", name="Pause", exact=True).click()
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
        assert walk.complaints == []


def test_times_of_a_link_that_fails(browser: Browser, delivered: Delivered) -> None:
    """UI-113: the page shows a time, not a number."""
    with walking(browser, delivered.url, extra_http_headers=AUTHORIZATION) as walk:
        time_of_failure = walk.page.get_by_role("region", name="State", exact=True).get_by_role("time")
        until(lambda: walk.go("/ui/links/copy") and time_of_failure.count() == 1)
        expect(time_of_failure).to_have_text(re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"))
