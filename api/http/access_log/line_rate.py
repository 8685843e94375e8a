"""Which requests get a log line while many arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal

AccessLogMode = Literal["auto", "on", "off"]

#: Requests per second above which `auto` leaves lines out.
AUTO_LIMIT: Final = 50
#: Seconds between two reports of requests without a line.
REPORT_SECONDS: Final = 10
_WINDOW_SECONDS: Final = 1.0
_LIMITS: Final[dict[AccessLogMode, float]] = {"auto": AUTO_LIMIT, "on": float("inf"), "off": 0}

#: Receives the number of requests without a line, and the seconds in which they arrived.
ReportSkipped = Callable[[int, float], None]


class LineRate:
    """Admits lines until more requests arrive in one second than the limit, then none until fewer do.

    It belongs to one event loop, whose timer ends the seconds, so that a request reads no clock. report_skipped: called
    at the end of such a time, and every REPORT_SECONDS while it lasts; never if the mode is not `auto`.
    """

    def __init__(self, mode: AccessLogMode, report_skipped: ReportSkipped) -> None:
        self._report_skipped = report_skipped
        self._limit = self._allowed = _LIMITS[mode]
        self._has_seconds = mode == "auto"
        self._timer: asyncio.TimerHandle | None = None
        #: Requests of this second. Requests without a line since a time of the event loop.
        self._seen = self._skipped = 0
        self._skipped_since = 0.0

    def admits(self) -> bool:
        """Whether one more request gets a line. Cost: a tenth of a microsecond if it does not."""
        self._seen += 1
        if self._seen > self._allowed:
            self._skipped += 1
            return False
        if self._timer is None and self._has_seconds:
            self._skipped_since = asyncio.get_running_loop().time()
            self._start_second()
        return True

    def close(self) -> None:
        """Reports the requests without a line that no report has counted yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._report(asyncio.get_running_loop().time())

    def _start_second(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_WINDOW_SECONDS, self._end_second)

    def _end_second(self) -> None:
        now, is_busy = asyncio.get_running_loop().time(), self._seen > self._limit
        if not is_busy or now - self._skipped_since >= REPORT_SECONDS:
            self._report(now)
        self._seen, self._timer = 0, None
        # After a busy second no request gets a line until there was a second that is not busy.
        self._allowed = 0 if is_busy else self._limit
        if is_busy:
            self._start_second()

    def _report(self, now: float) -> None:
        if self._skipped:
            self._report_skipped(self._skipped, now - self._skipped_since)
        self._skipped, self._skipped_since = 0, now
