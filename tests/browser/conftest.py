"""One browser, and one registry with a sample of everything, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Walk, chromium, walking
from tests.support.registries.sample import fill
from tests.support.serving import serving


@pytest.fixture(scope="session")
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


@pytest.fixture
def walk(browser: Browser, sample_url: str) -> Iterator[Walk]:
    """A walk through the sample in a wide window."""
    with walking(browser, sample_url) as walk:
        yield walk
