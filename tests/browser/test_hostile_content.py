"""Pages of large entities and of texts with markup have a bounded size, fit the window, and execute no content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import NARROW, WIDE, Walk, walking
from tests.support.registries.hostile import MARKUP, fill
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(400), pytest.mark.long]

_GROUP: Final = "schemagroups/hostile"
_SCHEMA: Final = f"{_GROUP}/schemas"
#: Pages of one entity, and pages with many rows.
ENTITIES: Final = (
    f"explore/{_GROUP}",
    *(f"explore/{_SCHEMA}/{id}" for id in ("marks", "nested", "quotes", "longer", "markup", "lines", "attributes")),
    *(f"edit/{_SCHEMA}/{id}" for id in ("marks", "quotes", "longer", "markup", "attributes")),
    f"explore/{_SCHEMA}/versions",
    f"compare/{_SCHEMA}/lines",
    f"compare/{_SCHEMA}/lines?view=inline",
    f"compare/{_SCHEMA}/versions?left=v1&right=v9&of=attributes",
    f"compare/{_GROUP}?leftasof=5",
    f"delete/{_GROUP}",
    "delete/schemagroups/many",
    "explore/endpoints/all",
    "graph/endpoints/all",
    "explore/schemagroups/many/schemas?limit=500",
    f"explore/{_SCHEMA}/versions/versions?limit=500",
    "findings?limit=500",
    "interactions/{id}?limit=500",
)
LISTS: Final = (
    "",
    "explore/schemagroups",
    "explore/schemagroups/many/schemas",
    f"explore/{_SCHEMA}/versions/versions",
    "explore/messagegroups/many/messages",
    "findings",
    "timeline",
    f"timeline?path=/{_SCHEMA}/versions",
    "search?q=img",
    "search?q=member1",
    "interactions/{id}",
)
MAX_PAGE: Final = 1_000_000
MAX_LIST: Final = 150_000


@pytest.fixture(scope="module")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("hostile")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        yield served.url


@pytest.fixture(scope="module")
def largest(hostile_url: str) -> str:
    """The correlation id of the interaction with the most events."""
    found = httpx.get(f"{hostile_url}/-/interactions").json()
    return str(max(found, key=lambda each: each["last"] - each["first"])["xregcorrelationid"])


@pytest.mark.parametrize("path", [*ENTITIES, *LISTS])
def test_pages_are_bounded(hostile_url: str, largest: str, path: str) -> None:
    """UI-18: a page has at most 1 MB of HTML, a list of 50 rows at most 150 kB."""
    answer = httpx.get(f"{hostile_url}/ui/{path.format(id=largest)}", timeout=30)
    assert answer.status_code == 200, answer.text[:2000]
    assert len(answer.content) <= (MAX_LIST if path in LISTS else MAX_PAGE)


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_nothing_runs_or_is_too_wide(browser: Browser, hostile_url: str, largest: str, width: int) -> None:
    """UI-22, UI-29: texts of clients are shown and not interpreted, and fit the window."""
    with walking(browser, hostile_url, viewport={"width": width, "height": 800}) as walk:
        for path in (*ENTITIES, *LISTS):
            page = walk.go(f"/ui/{path.format(id=largest)}")
            assert (walk.overflow, walk.complaints) == (0, []), path
            assert page.title().endswith(" - annals") and page.locator("img, main script").count() == 0, path
        expect(walk.go(f"/ui/explore/{_SCHEMA}").get_by_role("main")).to_contain_text(MARKUP[:40])


@pytest.fixture
def walk(browser: Browser, hostile_url: str) -> Iterator[Walk]:
    with walking(browser, hostile_url) as walk:
        yield walk


@pytest.mark.parametrize(
    ("path", "line", "link", "size"),
    [
        (f"explore/{_SCHEMA}/markup", "This is the beginning", "The whole document", 900_000),
        (f"explore/{_SCHEMA}/longer", "too long to be shown here", "Download", 9_000_000),
        (f"explore/{_SCHEMA}/attributes", "more attributes", "Raw JSON", 400_000),
        (f"explore/{_SCHEMA}/versions", "", "All Versions", 20_000),
        (f"compare/{_GROUP}?leftasof=5", "There are more differences", "CSV", 1_000_000),
        ("explore/endpoints/all", "more messages", "All messages with their schemas", 10_000),
    ],
)
def test_what_is_cut_leads_to_the_whole(walk: Walk, path: str, line: str, link: str, size: int) -> None:
    """UI-18, UI-74."""
    page = walk.go(f"/ui/{path}")
    expect(page.get_by_role("main")).to_contain_text(line)
    url = page.get_by_role("link", name=link, exact=True).get_attribute("href") or ""
    answer = httpx.get(httpx.URL(walk.url).join(url), timeout=60)
    assert answer.status_code == 200 and len(answer.content) >= size
