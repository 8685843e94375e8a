"""What the outcomes of attempts say about a sink as a whole, noted in the facts of its subscription."""

from __future__ import annotations

from typing import Final

from projections.subscriptions.contract import Outcome, Result
from projections.subscriptions.facts import Facts

#: Dead letters in a row, and seconds without any success, after which a subscription is suspended (SUB-822).
MOST_DEAD: Final = 50
FAILING: Final = 72 * 3600.0
#: Refusals in a row after which a sink that has consented no longer does.
REFUSALS: Final = 3


def note_outcome(facts: Facts, outcome: Outcome, message: str, now: float) -> None:
    """Notes the outcome of a request. message: the sink's own words, fit to be shown."""
    if outcome.result is Result.DELIVERED:
        facts.lastsuccess, facts.failing, facts.dead, facts.stored = now, 0.0, 0, outcome.stored
        if facts.state == "unauthorized":
            facts.state = ""
        return
    facts.lasterror = {"time": now, "code": outcome.code, "message": message}
    facts.failing = facts.failing or now
    if outcome.until is not None:
        facts.hold = max(facts.hold, outcome.until.timestamp())
    if outcome.result is Result.GONE:
        facts.state = "gone"
    elif outcome.result is Result.UNAUTHORIZED:
        facts.state = facts.state or "unauthorized"
    if now - facts.failing >= FAILING:
        _suspend(facts)


def note_dead_letter(facts: Facts) -> None:
    """Notes that an event is not delivered."""
    facts.dead += 1
    if facts.dead >= MOST_DEAD:
        _suspend(facts)


def note_consent(facts: Facts, allowed: bool, rate: int | None) -> bool:
    """Notes a sink's answer to the question for its consent; returns whether it differs from what was known."""
    before = facts.consent
    if allowed:
        facts.consent, facts.rate, facts.refusals = "validated", rate or 0, 0
    else:
        facts.refusals += 1
        if before != "validated" or facts.refusals >= REFUSALS:
            facts.consent, facts.rate = "unvalidated", 0
    return facts.consent != before


def _suspend(facts: Facts) -> None:
    """Stops deliveries until somebody resumes them (SUB-822)."""
    if facts.state in ("", "unauthorized"):
        facts.state = "suspended"
