"""What follows from an attempt's outcome: a table of results, and when the next attempt is (8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from projections.subscriptions.contract import DeliveryResult, Outcome


class NextStep(Enum):
    """What becomes of an event. SETTLED: it has arrived. AGAIN: at a time. DEAD: never. KEPT: until somebody says."""

    SETTLED = "settled"
    AGAIN = "again"
    DEAD = "dead"
    KEPT = "kept"


class RetryDecision(NamedTuple):
    """at: of the next attempt. counts: whether the one that was made uses one up. reason: why an event is dead."""

    next: NextStep
    at: float = 0.0
    counts: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A subscription's `protocolsettings.retry`; times in seconds."""

    maxattempts: int = 20
    maxage: float = 86400.0
    initialdelay: float = 1.0
    maxdelay: float = 300.0
    multiplier: float = 2.0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> RetryPolicy:
        """From `protocolsettings`; what is not said has its default."""
        given = settings.get("retry") or {}
        return cls(**{name: given[name] for name in cls.__dataclass_fields__ if given.get(name) is not None})

    def delay(self, attempts: int, chance: float) -> float:
        """Seconds after so many attempts, at least one: doubled each time, and a random part of that (full jitter)."""
        # From some power on the result would overflow; the most is reached long before.
        steps = min(attempts - 1, 1000) if self.multiplier > 1 else 0
        try:
            longest = self.initialdelay * self.multiplier**steps
        except OverflowError:
            longest = self.maxdelay
        return min(longest, self.maxdelay) * chance


def decide_retry(
    outcome: Outcome, attempts: int, first: float, retries: RetryPolicy, now: float, chance: float
) -> RetryDecision:
    """What becomes of an event. attempts: with this one. first: when the first one was made."""
    if outcome.until is not None and outcome.result is DeliveryResult.RETRY and now < first + retries.maxage:
        return RetryDecision(NextStep.AGAIN, max(outcome.until.timestamp(), now), counts=False)
    match outcome.result:
        case DeliveryResult.DELIVERED:
            return RetryDecision(NextStep.SETTLED)
        case DeliveryResult.REJECTED:
            return RetryDecision(NextStep.DEAD, reason="rejected")
        case DeliveryResult.GONE:
            return RetryDecision(NextStep.KEPT, counts=False)
        case DeliveryResult.RETRY | DeliveryResult.UNAUTHORIZED:
            return _retry_or_give_up(attempts, first, retries, now, chance)


def _retry_or_give_up(attempts: int, first: float, retries: RetryPolicy, now: float, chance: float) -> RetryDecision:
    end = first + retries.maxage
    if attempts >= retries.maxattempts:
        return RetryDecision(NextStep.DEAD, reason="maxattempts")
    if now >= end:
        return RetryDecision(NextStep.DEAD, reason="maxage")
    return RetryDecision(NextStep.AGAIN, min(now + retries.delay(attempts, chance), end))
