"""One browser, and one registry with a sample of everything, for all tests here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Walk, chromium, walking
from tests.support.registries.sample import fill
from tests.support.serving import serving

#: What requests of the administrator of `admin_url` have.
ADMIN: Final = {"Authorization": "Bearer admin-token"}
WRITER: Final = {"Authorization": "Bearer other"}


# Playwright runs an event loop in this thread, where other tests run their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def sample_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the sample is served, which no test changes."""
    home: Path = tmp_path_factory.mktemp("sample")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        yield served.url


@pytest.fixture(scope="session")
def admin_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the sample is served to callers with a token, and accepts API keys."""
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
    """Where a sample is served that the tests of one file change."""
    home: Path = tmp_path_factory.mktemp("changed")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        fill(served.url)
        yield served.url


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def has_scripts(request: pytest.FixtureRequest) -> bool:
    """Whether the browser of a journey runs scripts; each journey is made with and without."""
    return bool(request.param)
