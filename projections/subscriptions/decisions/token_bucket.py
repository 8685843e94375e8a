"""The request rate limit of a subscription: a token bucket whose level survives restarts (SUB-711, SUB-713)."""

from __future__ import annotations

from typing import NamedTuple

#: For sinks that have not consented: requests a minute, and requests at once.
UNVALIDATED_LIMIT = 10, 20


class TokenBucket(NamedTuple):
    """A token bucket.

    rate: tokens a minute.
    capacity: maximum number of tokens.
    level: tokens at the time `updated_at`.
    updated_at: seconds since 1970.
    """

    rate: float
    capacity: float
    level: float
    updated_at: float

    @classmethod
    def full(cls, rate: int, now: float, capacity: int | None = None) -> TokenBucket:
        """A full bucket. capacity: by default the tokens of one second, so that no minute exceeds the rate."""
        full_level = capacity or max(1.0, rate / 60)
        return cls(rate, full_level, full_level, now)

    def refilled(self, now: float) -> TokenBucket:
        """The bucket refilled up to now. A clock that was set back adds no tokens."""
        return self._replace(
            level=min(self.capacity, self.level + max(0.0, now - self.updated_at) * self.rate / 60), updated_at=now
        )

    def seconds_until_token(self, now: float) -> float:
        """Seconds until a token is available."""
        return max(0.0, (1 - self.refilled(now).level) * 60 / self.rate)

    def without_token(self, now: float) -> TokenBucket:
        """The bucket with one token less."""
        refilled = self.refilled(now)
        return refilled._replace(level=refilled.level - 1)

    def with_rate(self, rate: int, now: float, capacity: int | None = None) -> TokenBucket:
        """The bucket with another rate and its current level."""
        full_bucket = TokenBucket.full(rate, now, capacity)
        return (
            self
            if (self.rate, self.capacity) == (full_bucket.rate, full_bucket.capacity)
            else full_bucket._replace(level=min(full_bucket.capacity, self.refilled(now).level))
        )
