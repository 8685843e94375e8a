"""The order of tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take longest begin first, so that no worker is left with one of them while others have nothing."""
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0
