"""A cache keeps what was added last, also if several threads add to it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from annals.api.registry.bounded_cache import BoundedCache


class SlowKey:
    """A key whose look-up lets other threads go on."""

    def __hash__(self) -> int:
        time.sleep(0.0001)
        return id(self)


def test_the_first_one_goes() -> None:
    cache = BoundedCache[str, int](2)
    assert [cache.add(key, number) for number, key in enumerate("abc")] == [0, 1, 2]
    assert [cache.get(key) for key in "abc"] == [None, 1, 2]


def test_threads_share_it() -> None:
    cache = BoundedCache[SlowKey, int](2)

    def add(count: int) -> int:
        return sum(cache.add(SlowKey(), 1) for _ in range(count))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(add, [100] * 4)) == [100] * 4
