"""A registry in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.registries.in_process import Api, create, serving


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    """A new registry on SQLite."""
    create(sqlite_url)
    with serving(sqlite_url) as served:
        yield served
