"""Counts failed checks of credentials, so that nobody can try many of them (ACC-110)."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from annals.domain.errors.http_errors import TooManyAttempts

#: Seconds in which failures count, and how many are allowed: of one name from one address, and of one address.
WINDOW_SECONDS: Final = 300.0
MAX_BY_NAME: Final = 5
MAX_BY_ADDRESS: Final = 50
#: Maximum number of entries; the oldest are dropped.
MAX_ENTRIES: Final = 10_000
#: Bits of an IPv6 address that identify a network: a client has all addresses in it.
_NETWORK_BITS: Final = 64

#: An address, or an address and a name.
Key = tuple[str, str | None]


class FailedAttempts:
    """The failures of one process. clock: in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[Key, deque[float]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._failures)

    def check(self, address: str, name: str) -> None:
        """Checks that one more attempt is allowed. name: of the credential; empty for one without.

        Raises: TooManyAttempts.
        """
        now = self._clock()
        waits = [self._wait(key, now) for key in _keys(address, name)]
        if any(waits):
            raise TooManyAttempts(retry_after=math.ceil(max(waits)))

    def add(self, address: str, name: str) -> None:
        """Counts a failure. Cost: O(1)."""
        for key in _keys(address, name):
            times = self._failures.setdefault(key, deque(maxlen=_limit(key)))
            times.append(self._clock())
            self._failures.move_to_end(key)
        while len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)

    def _wait(self, key: Key, now: float) -> float:
        """Seconds until the next attempt is allowed; 0 if one is."""
        times = self._failures.get(key)
        if times is None or len(times) < _limit(key):
            return 0.0
        return max(0.0, times[0] + WINDOW_SECONDS - now)


def _keys(address: str, name: str) -> tuple[Key, ...]:
    network = network_of(address)
    return ((network, None), (network, name[:256])) if name else ((network, None),)


def _limit(key: Key) -> int:
    return MAX_BY_ADDRESS if key[1] is None else MAX_BY_NAME


def network_of(address: str) -> str:
    """An IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> _NETWORK_BITS << _NETWORK_BITS))
