"""One browser, and served registries with the sample, for all tests in this folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Walk, chromium, wait_for_comparisons, walking
from tests.support.registries.sample import fill
from tests.support.serving import serving

#: Request headers of the administrator and of a writer of `admin_url`.
ADMIN: Final = {"Authorization": "Bearer admin-token"}
WRITER: Final = {"Authorization": "Bearer other"}


# Not for the whole session: Playwright runs an event loop in this thread, and tests of other folders run their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def sample_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry with the sample. Tests do not change it."""
    home: Path = tmp_path_factory.mktemp("sample")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        wait_for_comparisons(served.url, "schemagroups/sensors/schemas/reading?left=1&right=3")
        yield served.url


@pytest.fixture(scope="session")
def admin_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry with the sample that requires tokens and accepts API keys."""
    home: Path = tmp_path_factory.mktemp("admin")
    tokens = json.dumps({"admin-token": {"name": "alice", "role": "admin"}, "other": {"name": "bob", "role": "writer"}})
    settings = {"ANNALS_TOKENS": tokens, "ANNALS_API_KEYS": "true"}
    with serving(f"sqlite:///{home / 'annals.db'}", home, **settings) as served:
        fill(served.url, headers=ADMIN)
        yield served.url


@pytest.fixture
def admin(browser: Browser, admin_url: str) -> Iterator[Walk]:
    """A walk of an administrator."""
    with walking(browser, admin_url, extra_http_headers=ADMIN) as walk:
        yield walk


@pytest.fixture
def walk(browser: Browser, sample_url: str) -> Iterator[Walk]:
    """A walk through the sample in a wide window."""
    with walking(browser, sample_url) as walk:
        yield walk


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry with the sample that the tests of one file may change."""
    home: Path = tmp_path_factory.mktemp("changed")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        yield served.url


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def has_scripts(request: pytest.FixtureRequest) -> bool:
    """Whether the browser runs scripts. Each test with this fixture runs with and without scripts."""
    return bool(request.param)
