"""Limits the requests of one caller per second (`ANNALS_RATE_READS`, `ANNALS_RATE_WRITES`)."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from annals.domain.errors.http_errors import TooManyRequests

#: Maximum number of callers that are counted; those who have not called for longest are dropped.
MAX_CALLERS: Final = 10_000


class RequestRates:
    """The requests of all callers of one process. reads, writes: per second; None for no limit. clock: in seconds."""

    def __init__(self, reads: float | None, writes: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = {True: reads, False: writes}
        self._clock = clock
        #: By caller and whether it reads: how many more requests are allowed, and at which time that was so.
        self._allowed: OrderedDict[tuple[str, bool], tuple[float, float]] = OrderedDict()

    @property
    def is_on(self) -> bool:
        """Whether there is any limit."""
        return any(rate is not None for rate in self._rates.values())

    def count(self, caller: str, is_read: bool) -> None:
        """Counts a request. A caller may send the requests of one second at once. Raises: TooManyRequests."""
        rate = self._rates[is_read]
        if rate is None:
            return
        key, now = (caller, is_read), self._clock()
        allowed, since = self._allowed.pop(key, (max(1.0, rate), now))
        allowed = min(max(1.0, rate), allowed + (now - since) * rate)
        is_allowed = allowed >= 1
        self._allowed[key] = allowed - is_allowed, now
        if len(self._allowed) > MAX_CALLERS:
            self._allowed.popitem(last=False)
        if not is_allowed:
            kind = "reads" if is_read else "writes"
            raise TooManyRequests(kind=kind, rate=f"{rate:g}", retry_after=math.ceil((1 - allowed) / rate))
