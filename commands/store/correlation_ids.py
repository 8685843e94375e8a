"""Correlation ids: the common id of all events of one interaction (EV-24 to EV-26)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Final

from annals.commands.store.random_blocks import RandomBlocks

#: Returns a new correlation id; no two are equal, ignoring case.
NewId = Callable[[], str]
#: As NewId, given the last id of the log and the id's time.
NextId = Callable[[str, datetime], str]

# Crockford's digits in lower case only: two ids that fold to the same text are the same id.
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
#: Two digits at a time, by their value.
_DIGIT_PAIRS: Final = tuple(first + second for first in _DIGITS for second in _DIGITS)
_RANDOM_BITS: Final = 80
# The step between two values within a millisecond is random, because another registry may count on from the same id: a
# copy of this one, or the one that this one copies.
_STEP_BITS: Final = 64
_ULID: Final = re.compile(f"[0-7][{_DIGITS}]{{25}}")
_BASE32_TRANSLATION: Final = str.maketrans(_DIGITS, "0123456789abcdefghijklmnopqrstuv")


class UlidGenerator:
    """Calling it returns 26 characters: 48 bits of milliseconds, then 80 random bits. Each id sorts after the last.

    Within a millisecond, and while the machine's clock is behind, it counts on from the last value.
    """

    def __init__(self, milliseconds: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._milliseconds = milliseconds
        self._last_value = 0
        self._last_id = ""
        self._random = RandomBlocks()
        self._lock = Lock()

    def __call__(self, previous_id: str = "", now: datetime | None = None) -> str:
        """The next id.

        previous_id: the last id of the log, which sorts before it if it is a ULID. now: the id's time.
        """
        milliseconds = self._milliseconds() if now is None else int(now.timestamp() * 1000)
        with self._lock:
            last_value = self._last_value
            if previous_id != self._last_id:
                last_value = max(last_value, _decode_ulid(previous_id))
            if milliseconds > last_value >> _RANDOM_BITS:
                self._last_value = milliseconds << _RANDOM_BITS | self._random.integer(_RANDOM_BITS)
            else:
                self._last_value = last_value + 1 + self._random.integer(_STEP_BITS)
            self._last_id = _encode_ulid(self._last_value)
            return self._last_id


def is_correlation_id(text: str) -> bool:
    """Whether a text has the form of the ids that registries give."""
    return _ULID.fullmatch(text.casefold()) is not None


def adapt_new_id(new_id: NewId) -> NextId:
    """A generator of ids that do not depend on the log."""
    return lambda after, now: new_id()


def _encode_ulid(value: int) -> str:
    return "".join([_DIGIT_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])


def _decode_ulid(text: str) -> int:
    """The inverse of `_encode_ulid`; 0 for text that is not a ULID."""
    folded = text.casefold()
    return int(folded.translate(_BASE32_TRANSLATION), 32) if _ULID.fullmatch(folded) else 0
