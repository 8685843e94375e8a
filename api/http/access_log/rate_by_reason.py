"""Which denials get a log line, or a row, while many happen."""

from __future__ import annotations

import time
from typing import Final

#: Denials per second and reason that are admitted; the next one says how many more there were.
MAX_LINES_PER_SECOND: Final = 10


class RateByReason:
    """Admits at most MAX_LINES_PER_SECOND denials in one second for the same reason. reason: one of few words."""

    def __init__(self) -> None:
        #: By reason: a second, those admitted in it, and the denials since the last one that was admitted.
        self._counts: dict[str, tuple[int, int, int]] = {}

    def admit(self, reason: str) -> int | None:
        """How many denials were not admitted before this one; None if this one is not either."""
        now = int(time.monotonic())
        second, admitted, left_out = self._counts.get(reason, (now, 0, 0))
        if second != now:
            admitted = 0
        if admitted >= MAX_LINES_PER_SECOND:
            self._counts[reason] = now, admitted, left_out + 1
            return None
        self._counts[reason] = now, admitted + 1, 0
        return left_out
