"""Waits until a condition holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Waits until a condition holds, and returns its value."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found
