"""Counts failed checks of credentials, so that nobody can try many of them (ACC-110)."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
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
        #: The different credentials whose checks have begun and not ended, with the number of these checks.
        self._running: dict[Key, Counter[Hashable]] = {}

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

    @contextmanager
    def checking(self, address: str, name: str, credential: Hashable) -> Iterator[None]:
        """Counts a check that takes long as a failure while it runs, so that guesses sent at once are no more than
        those sent one after the other. Checks of equal credentials at the same time count as one.

        Raises: TooManyAttempts.
        """
        keys, now = _keys(address, name), self._clock()
        for key in keys:
            running = self._running.get(key, ())
            if credential not in running and self._count(key, now) + len(running) >= _limit(key):
                raise TooManyAttempts(retry_after=1)
        for key in keys:
            self._running.setdefault(key, Counter())[credential] += 1
        try:
            yield
        finally:
            for key in keys:
                self._running[key] -= Counter((credential,))
                if not self._running[key]:
                    del self._running[key]

    def _count(self, key: Key, now: float) -> int:
        """The failures that still count."""
        return sum(time > now - WINDOW_SECONDS for time in self._failures.get(key, ()))

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
