"""The state of a sink as a whole, derived from outcomes of attempts and recorded in the DeliveryRecord."""

from __future__ import annotations

from typing import Final

from projections.subscriptions.contract import DeliveryResult, Outcome
from projections.subscriptions.state.delivery_record import DeliveryRecord

#: Consecutive dead letters, and seconds without success, after which a subscription is suspended (SUB-822).
MAX_DEAD_LETTERS: Final = 50
MAX_FAILING_SECONDS: Final = 72 * 3600.0
#: Consecutive refusals after which a sink's consent is withdrawn.
MAX_REFUSALS: Final = 3


def note_outcome(facts: DeliveryRecord, outcome: Outcome, message: str, now: float) -> None:
    """Records the outcome of a request. message: the sink's message, without secrets."""
    if outcome.result is DeliveryResult.DELIVERED:
        facts.lastsuccess, facts.failing, facts.dead, facts.stored = now, 0.0, 0, outcome.stored
        if facts.state == "unauthorized":
            facts.state = ""
        return
    facts.lasterror = {"time": now, "code": outcome.code, "message": message}
    facts.failing = facts.failing or now
    if outcome.until is not None:
        facts.hold = max(facts.hold, outcome.until.timestamp())
    if outcome.result is DeliveryResult.GONE:
        facts.state = "gone"
    elif outcome.result is DeliveryResult.UNAUTHORIZED:
        facts.state = facts.state or "unauthorized"
    if now - facts.failing >= MAX_FAILING_SECONDS:
        _suspend(facts)


def note_dead_letter(facts: DeliveryRecord) -> None:
    """Records that an event was given up."""
    facts.dead += 1
    if facts.dead >= MAX_DEAD_LETTERS:
        _suspend(facts)


def note_consent(facts: DeliveryRecord, allowed: bool, rate: int | None) -> bool:
    """Records a sink's answer to a request for consent. Returns whether the consent changed."""
    before = facts.consent
    if allowed:
        facts.consent, facts.rate, facts.refusals = "validated", rate or 0, 0
    else:
        facts.refusals += 1
        if before != "validated" or facts.refusals >= MAX_REFUSALS:
            facts.consent, facts.rate = "unvalidated", 0
    return facts.consent != before


def _suspend(facts: DeliveryRecord) -> None:
    """Stops deliveries until the owner resumes them (SUB-822)."""
    if facts.state in ("", "unauthorized"):
        facts.state = "suspended"
