"""Registries on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.registries.recorded import Registry


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """An empty registry, on each database in turn."""
    with Registry(store_url) as registry:
        yield registry
