"""A cache keeps what was added last, also if several threads add to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from annals.api.registry.bounded_cache import BoundedCache


@pytest.fixture
def many_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_the_first_one_goes() -> None:
    cache = BoundedCache[str, int](2)
    assert [cache.add(key, number) for number, key in enumerate("abc")] == [0, 1, 2]
    assert [cache.get(key) for key in "abc"] == [None, 1, 2]


@pytest.mark.usefixtures("many_switches")
def test_threads_share_it() -> None:
    cache = BoundedCache[int, int](2)

    def add(start: int) -> int:
        return sum(cache.add(number, 1) for number in range(start, start + 5_000))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(add, range(0, 40_000, 10_000))) == [5_000] * 4
