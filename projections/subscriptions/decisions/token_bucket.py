"""How many requests a subscription makes: a token bucket whose level survives restarts (SUB-711, SUB-713)."""

from __future__ import annotations

from typing import NamedTuple

#: Requests a minute, and at once, to sinks that have not consented.
UNVALIDATED_LIMIT = 10, 20


class TokenBucket(NamedTuple):
    """rate: tokens a minute. most: tokens that it holds. level: how many it held at a time, in seconds since 1970."""

    rate: float
    most: float
    level: float
    at: float

    @classmethod
    def of(cls, rate: int, now: float, most: int | None = None) -> TokenBucket:
        """A full one. most: without it what comes in a second, so that no minute sees more than its rate."""
        full = most or max(1.0, rate / 60)
        return cls(rate, full, full, now)

    def now(self, now: float) -> TokenBucket:
        """With what has come in since; a clock that was set back brings nothing."""
        return self._replace(level=min(self.most, self.level + max(0.0, now - self.at) * self.rate / 60), at=now)

    def wait(self, now: float) -> float:
        """Seconds until there is a token."""
        return max(0.0, (1 - self.now(now).level) * 60 / self.rate)

    def taken(self, now: float) -> TokenBucket:
        """Without one token."""
        filled = self.now(now)
        return filled._replace(level=filled.level - 1)

    def like(self, rate: int, now: float, most: int | None = None) -> TokenBucket:
        """Under another rate, with the level that this one has."""
        fresh = TokenBucket.of(rate, now, most)
        return (
            self
            if (self.rate, self.most) == (fresh.rate, fresh.most)
            else fresh._replace(level=min(fresh.most, self.now(now).level))
        )
