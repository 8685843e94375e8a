from __future__ import annotations

from collections.abc import Iterator

import pytest

from commands.store.log import Store
from tests.stores import postgres_server, postgres_url, sqlite_url, store_url

__all__ = ["postgres_server", "postgres_url", "sqlite_url", "store_url"]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty log with its tables made."""
    store = Store(store_url, public_url="http://localhost:8080")
    store.create()
    yield store
    store.close()
