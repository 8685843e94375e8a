"""Correlation ids: what ties the events of one interaction together (EV-24 to EV-26)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

#: Gives a new correlation id; no two are equal, ignoring case.
NewId = Callable[[], str]

# Crockford's digits in lower case only: two ids that fold to the same text are the same id.
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS: Final = 80


class Ulids:
    """Calling it gives 26 characters: 48 bits of milliseconds, then 80 of chance. Each sorts after the one before.

    Within a millisecond, and while the machine's clock runs backwards, the last value is counted on.
    """

    def __init__(self, milliseconds: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._milliseconds = milliseconds
        self._last = 0
        self._lock = Lock()

    def __call__(self) -> str:
        with self._lock:
            fresh = self._milliseconds() << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
            self._last = fresh if fresh >> _RANDOM_BITS > self._last >> _RANDOM_BITS else self._last + 1
            return _text(self._last)


def _text(value: int) -> str:
    return "".join(_DIGITS[value >> shift & 31] for shift in range(125, -1, -5))
