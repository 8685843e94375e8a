"""Stores on both databases, and registries in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.projections.registry import Registry
from tests.stores import postgres_server, postgres_url, sqlite_url, store_url

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store_url"]


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """An empty registry, on each database in turn."""
    with Registry(store_url) as registry:
        yield registry
