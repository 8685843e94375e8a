"""Stores on both databases, and registries in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.projections.registry import Registry
from tests.stores import postgres_server, postgres_url, sqlite_url, store_url

#: Groups of the large registry, and Resources of each.
GROUPS, FILES = 20, 100

__all__ = ["FILES", "GROUPS", "postgres_server", "postgres_url", "sqlite_url", "store_url"]


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    """An empty registry, on each database in turn."""
    with Registry(store_url) as registry:
        yield registry


@pytest.fixture
def large(registry: Registry) -> Iterator[Registry]:
    """Enough entities that scanning them would cost more."""
    for d in range(GROUPS):
        files = ((f"/dirs/d{d}/files/f{f}", {"name": f"n{f}", "size": f, "meta": {}}) for f in range(FILES))
        registry.record((f"/dirs/d{d}", {"name": f"d{d}"}), *files)
    with registry.store.writing() as tx:
        if tx.connection.dialect.name == "postgresql":
            tx.connection.exec_driver_sql("ANALYZE")
    yield registry
