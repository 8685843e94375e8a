"""The state of a sink as a whole, derived from outcomes of attempts and recorded in the DeliveryRecord."""

from __future__ import annotations

from typing import Final

from annals.projections.subscriptions.contract import DeliveryResult, Outcome
from annals.projections.subscriptions.state.delivery_record import DeliveryRecord

#: Consecutive dead letters, and seconds of failures, after which a subscription is suspended (SUB-822).
MAX_DEAD_LETTERS: Final = 50
MAX_FAILING_SECONDS: Final = 72 * 3600.0
#: Seconds between two failures above which the time between them was none of failures: nothing was attempted.
MAX_QUIET_SECONDS: Final = 24 * 3600.0
#: Consecutive refusals after which a sink's consent is withdrawn.
MAX_REFUSALS: Final = 3


def note_outcome(record: DeliveryRecord, outcome: Outcome, message: str, now: float) -> None:
    """Records the outcome of a request. message: the sink's message, without secrets."""
    if record.state == "unauthorized":
        record.state = ""  # it describes the last attempt
    if outcome.result is DeliveryResult.DELIVERED:
        record.lastsuccess, record.failing, record.dead, record.stored = now, 0.0, 0, outcome.is_stored
        return
    record.note_error(outcome.code, message, now)
    if not record.failing or now - record.failed > MAX_QUIET_SECONDS:
        record.failing = now
    record.failed = now
    if outcome.retry_at is not None:
        record.hold = max(record.hold, outcome.retry_at.timestamp())
    if outcome.result is DeliveryResult.GONE:
        record.state = "gone"
    elif outcome.result is DeliveryResult.UNAUTHORIZED:
        record.state = record.state or "unauthorized"
    if now - record.failing >= MAX_FAILING_SECONDS:
        _suspend(record)


def note_dead_letter(record: DeliveryRecord) -> None:
    """Records that an event was given up."""
    record.dead += 1
    if record.dead >= MAX_DEAD_LETTERS:
        _suspend(record)


def note_consent(record: DeliveryRecord, allowed: bool, rate: int | None, reason: str = "") -> bool:
    """Records a sink's answer to a request for consent. Returns whether the consent changed. reason: of a refusal."""
    previous_consent, record.reason = record.consent, reason
    if allowed:
        record.consent, record.rate, record.refusals = "validated", rate or 0, 0
    else:
        record.refusals += 1
        if previous_consent != "validated" or record.refusals >= MAX_REFUSALS:
            record.consent, record.rate = "unvalidated", 0
    return record.consent != previous_consent


def _suspend(record: DeliveryRecord) -> None:
    """Stops deliveries until the owner resumes them (SUB-822)."""
    if record.state in ("", "unauthorized"):
        record.state = "suspended"
