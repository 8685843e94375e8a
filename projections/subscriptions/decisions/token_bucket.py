"""The request rate limit of a subscription: a token bucket whose level survives restarts (SUB-711, SUB-713)."""

from __future__ import annotations

from typing import NamedTuple

#: For sinks that have not consented: requests a minute, and requests at once.
UNVALIDATED_LIMIT = 10, 20


class TokenBucket(NamedTuple):
    """A token bucket.

    rate: tokens a minute.
    most: capacity in tokens.
    level: tokens at the time `at`.
    at: seconds since 1970.
    """

    rate: float
    most: float
    level: float
    at: float

    @classmethod
    def of(cls, rate: int, now: float, most: int | None = None) -> TokenBucket:
        """A full bucket. most: by default the tokens of one second, so that no minute exceeds the rate."""
        full = most or max(1.0, rate / 60)
        return cls(rate, full, full, now)

    def now(self, now: float) -> TokenBucket:
        """The bucket refilled up to now. A clock that was set back adds no tokens."""
        return self._replace(level=min(self.most, self.level + max(0.0, now - self.at) * self.rate / 60), at=now)

    def wait(self, now: float) -> float:
        """Seconds until a token is available."""
        return max(0.0, (1 - self.now(now).level) * 60 / self.rate)

    def taken(self, now: float) -> TokenBucket:
        """The bucket with one token less."""
        filled = self.now(now)
        return filled._replace(level=filled.level - 1)

    def like(self, rate: int, now: float, most: int | None = None) -> TokenBucket:
        """The bucket with another rate and its current level."""
        fresh = TokenBucket.of(rate, now, most)
        return (
            self
            if (self.rate, self.most) == (fresh.rate, fresh.most)
            else fresh._replace(level=min(fresh.most, self.now(now).level))
        )
