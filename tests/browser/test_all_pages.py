"""What holds on every page: accessibility, no complaint of the browser, no request elsewhere, no sideways scrolling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from annals.api.ui.routes import PAGES
from tests.support.browser import NARROW, WIDE, Walk, axe_script, check_look, walking

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

_READING: Final = "schemagroups/sensors/schemas/reading"
_ODD: Final = "schemagroups/sensors/schemas/odd:name@x~y.z"
#: Paths below `/ui/` of each page of the table, with odd ids, problems and moments of the past among them.
PATHS: Final = {
    "": ("", "?asof=20"),
    "search": ("search", "search?q=reading", "search?q=temp&versions=all", "search?q=nowhere"),
    "explore/": ("explore/", "explore/?asof=20"),
    "explore/{xid:path}": (
        "explore/schemagroups",
        "explore/schemagroups?filter=((",
        "explore/schemagroups/sensors?asof=20",
        "explore/schemagroups/sensors/schemas?sort=name=desc&limit=2",
        "explore/schemagroups/empty/schemas",
        f"explore/{_READING}",
        f"explore/{_READING}/versions",
        f"explore/{_READING}/versions/2",
        "explore/schemagroups/sensors/schemas/alarm",
        "explore/schemagroups/sensors/schemas/picture",
        f"explore/{_ODD}",
        "explore/messagegroups/sensors/messages/reading",
        "explore/endpoints/telemetry",
        "explore/schemagroups/none",
    ),
    "compare/": ("compare/?leftasof=20", "compare/"),
    "compare/{xid:path}": (
        f"compare/{_READING}",
        f"compare/{_READING}?left=1&right=3&view=inline",
        f"compare/{_READING}?left=1&right=3&of=meaning",
        f"compare/{_READING}?left=3&right=1&of=attributes",
        f"compare/{_READING}/versions/2?leftasof=20",
        "compare/schemagroups/sensors/schemas/picture",
        "compare/schemagroups/sensors/schemas/picture?of=meaning",
        f"compare/{_ODD}?of=meaning",
        "compare/schemagroups/sensors?leftasof=20",
        f"compare/{_READING}?leftasof=someday",
        f"compare/{_READING}?left=9",
    ),
    "new/{xid:path}": ("new/schemagroups", "new/schemagroups/sensors/schemas", f"new/{_READING}/versions"),
    "edit/": ("edit/",),
    "edit/{xid:path}": (f"edit/{_READING}", f"edit/{_ODD}", "edit/endpoints/telemetry"),
    "delete/{xid:path}": ("delete/schemagroups/sensors", f"delete/{_READING}/versions/1"),
    "model": ("model", "model?asof=20"),
    "capabilities": ("capabilities",),
    "restore/": ("restore/?asof=20",),
    "restore/{xid:path}": ("restore/schemagroups/sensors?asof=20", "restore/schemagroups/sensors"),
    "graph/{xid:path}": ("graph/endpoints/telemetry", "graph/endpoints/telemetry?asof=30", "graph/endpoints/none"),
    "subscriptions": ("subscriptions",),
    "subscriptions/new": ("subscriptions/new",),
    # Those of one subscription are in test_delivery_pages.py, because its id is random.
    **{f"subscriptions/{{id}}{path}": (f"subscriptions/none{path}",) for path in ("", "/edit", "/delete")},
    "subscriptions/{id}/discard/{sequence}": ("subscriptions/none/discard/1",),
    "links": ("links",),
    **{f"links/{{id}}{path}": (f"links/none{path}",) for path in ("", "/promote", "/repair")},
    "timeline": (
        "timeline",
        "timeline?asof=20",
        f"timeline?path=/{_READING}",
        "timeline?from=never",
        "timeline?id=none",
    ),
    "interactions/{id}": ("interactions/none",),
    "findings": ("findings", "findings?asof=20", "findings?path=/messagegroups/none", "findings?level=L2&rule=x"),
    "settings": ("settings",),
    "transfer": ("transfer", "transfer?saved=nothing&created=0&updated=2&deleted=0"),
    "confluent": ("confluent", "confluent?context=.none", "confluent?context=a:b", "confluent?asof=5"),
    "transfer/export": ("transfer/export?path=/schemagroups/none",),
    "keys": ("keys",),
    "keys/{id}/rotate": ("keys/none/rotate",),
    "keys/{id}/revoke": ("keys/none/revoke",),
    "grants": ("grants",),
    "grants/{id}/revoke": ("grants/none/revoke",),
}
ALL: Final = [path for paths in PATHS.values() for path in paths]
LOOKS: Final = [
    ("light", WIDE),
    ("dark", NARROW),
    pytest.param(("light", NARROW), marks=pytest.mark.long),
    pytest.param(("dark", WIDE), marks=pytest.mark.long),
]


def test_each_page_is_walked() -> None:
    assert set(PATHS) == {route.template for route in PAGES.routes}


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_script()


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}", scope="module")
def looking(request: pytest.FixtureRequest, browser: Browser, sample_url: str) -> Iterator[Walk]:
    scheme, width = request.param
    with walking(browser, sample_url, color_scheme=scheme, viewport={"width": width, "height": 800}) as walk:
        yield walk


@pytest.mark.parametrize("path", ALL)
def test_looks(looking: Walk, axe: str, path: str) -> None:
    """UI-12, UI-14, UI-19, UI-21, UI-22."""
    looking.complaints.clear()
    check_look(looking, axe, path)


@pytest.mark.parametrize("path", ALL)
def test_without_scripts(browser: Browser, sample_url: str, path: str) -> None:
    """UI-13, UI-20, UI-26: the page has its content, and the first link leads past the frame."""
    with walking(browser, sample_url, java_script_enabled=False) as walk:
        page = walk.go(f"/ui/{path}")
        expect(page.locator("h1")).to_be_visible()
        if page.get_by_role("alert").count():  # it has the focus, and what it is about
            expect(page.get_by_role("alert")).to_be_focused()
            return
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()


def test_the_theme_stays(walk: Walk) -> None:
    """UI-23: the choice holds on the next page."""
    page = walk.go("/ui/")
    page.get_by_role("combobox", name="Theme", exact=True).select_option("Dark")
    assert walk.go("/ui/?asof=20").evaluate("document.documentElement.dataset.theme") == "Dark"
