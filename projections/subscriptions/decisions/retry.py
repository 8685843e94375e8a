"""The next step after an attempt's outcome: a table of results, and the time of the next attempt (8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from annals.projections.subscriptions.contract import DeliveryResult, Outcome


class NextStep(Enum):
    """What happens to an event after an attempt.

    SETTLED: it was delivered. AGAIN: it is retried at a given time. DEAD: it is given up. KEPT: it waits until the
    subscription is resumed.
    """

    COMPLETE = "settled"
    RETRY = "again"
    DEAD_LETTER = "dead"
    WAIT = "kept"


class RetryDecision(NamedTuple):
    """The decision about an event after an attempt.

    time: time of the next attempt.
    counts_as_attempt: whether this attempt uses one up.
    reason: why a dead event was given up.
    """

    next_step: NextStep
    time: float = 0.0
    counts_as_attempt: bool = True
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
    def from_settings(cls, settings: Mapping[str, Any]) -> RetryPolicy:
        """The policy in `protocolsettings`, with defaults for missing members."""
        retry_settings = settings.get("retry") or {}
        return cls(
            **{name: retry_settings[name] for name in cls.__dataclass_fields__ if retry_settings.get(name) is not None}
        )

    def delay(self, attempts: int, random_fraction: float) -> float:
        """Seconds to wait after a number of attempts (at least 1): exponential backoff with full jitter.

        random_fraction: the random factor, from 0 to 1.
        """
        # Larger exponents would overflow; the result exceeds maxdelay long before.
        steps = min(attempts - 1, 1000) if self.multiplier > 1 else 0
        try:
            max_wait = self.initialdelay * self.multiplier**steps
        except OverflowError:
            max_wait = self.maxdelay
        return min(max_wait, self.maxdelay) * random_fraction


def decide_retry(
    outcome: Outcome, attempts: int, first_attempt: float, policy: RetryPolicy, now: float, random_fraction: float
) -> RetryDecision:
    """What happens to an event next. attempts: including this one. first_attempt: time of the first attempt."""
    if outcome.retry_at is not None and outcome.result is DeliveryResult.RETRY and now < first_attempt + policy.maxage:
        return RetryDecision(NextStep.RETRY, max(outcome.retry_at.timestamp(), now), counts_as_attempt=False)
    match outcome.result:
        case DeliveryResult.DELIVERED:
            return RetryDecision(NextStep.COMPLETE)
        case DeliveryResult.REJECTED:
            return RetryDecision(NextStep.DEAD_LETTER, reason="rejected")
        case DeliveryResult.GONE:
            return RetryDecision(NextStep.WAIT, counts_as_attempt=False)
        case DeliveryResult.RETRY | DeliveryResult.UNAUTHORIZED:
            return _retry_or_give_up(attempts, first_attempt, policy, now, random_fraction)


def _retry_or_give_up(
    attempts: int, first_attempt: float, policy: RetryPolicy, now: float, random_fraction: float
) -> RetryDecision:
    deadline = first_attempt + policy.maxage
    if attempts >= policy.maxattempts:
        return RetryDecision(NextStep.DEAD_LETTER, reason="maxattempts")
    if now >= deadline:
        return RetryDecision(NextStep.DEAD_LETTER, reason="maxage")
    return RetryDecision(NextStep.RETRY, min(now + policy.delay(attempts, random_fraction), deadline))
