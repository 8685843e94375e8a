from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals.commands.store.log import Store


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty log with its tables."""
    store = Store(store_url, public_url="http://localhost:8080")
    store.create()
    yield store
    store.close()
