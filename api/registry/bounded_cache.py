"""A cache of a limited size that several threads share."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The values that were added last. Thread-safe. size: how many at most."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: dict[K, V] = {}
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value of a key; None if the cache does not have it."""
        return self._values.get(key)

    def add(self, key: K, value: V) -> V:
        """The value, which the cache has now; the one that was added first goes if there are too many."""
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._size:
                del self._values[next(iter(self._values))]
        return value
