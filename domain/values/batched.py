"""Items in lists of a limited length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`, the last of which may be shorter; the items are read one list at a time."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
