"""What the outcomes of attempts say about a sink as a whole, noted in the facts of its subscription."""

from __future__ import annotations

from typing import Final

from projections.subscriptions.contract import DeliveryResult, Outcome
from projections.subscriptions.state.delivery_record import DeliveryRecord

#: Dead letters in a row, and seconds without any success, after which a subscription is suspended (SUB-822).
MAX_DEAD_LETTERS: Final = 50
MAX_FAILING_SECONDS: Final = 72 * 3600.0
#: Refusals in a row after which a sink that has consented no longer does.
MAX_REFUSALS: Final = 3


def note_outcome(facts: DeliveryRecord, outcome: Outcome, message: str, now: float) -> None:
    """Notes the outcome of a request. message: the sink's own words, fit to be shown."""
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
    """Notes that an event is not delivered."""
    facts.dead += 1
    if facts.dead >= MAX_DEAD_LETTERS:
        _suspend(facts)


def note_consent(facts: DeliveryRecord, allowed: bool, rate: int | None) -> bool:
    """Notes a sink's answer to the question for its consent; returns whether it differs from what was known."""
    before = facts.consent
    if allowed:
        facts.consent, facts.rate, facts.refusals = "validated", rate or 0, 0
    else:
        facts.refusals += 1
        if before != "validated" or facts.refusals >= MAX_REFUSALS:
            facts.consent, facts.rate = "unvalidated", 0
    return facts.consent != before


def _suspend(facts: DeliveryRecord) -> None:
    """Stops deliveries until somebody resumes them (SUB-822)."""
    if facts.state in ("", "unauthorized"):
        facts.state = "suspended"
