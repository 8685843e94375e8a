"""Decisions about deliveries, without I/O: from a state and an occurrence to the next state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.subscriptions.contract import DeliveryResult, Outcome
from annals.projections.subscriptions.decisions import delivery_queue
from annals.projections.subscriptions.decisions.control_actions import Effect, apply_change
from annals.projections.subscriptions.decisions.delivery_queue import (
    DEAD_LETTERS,
    LIVE,
    REPLAY,
    PendingEvent,
    QueuedEvent,
)
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.decisions.sink_status import (
    MAX_DEAD_LETTERS,
    MAX_FAILING_SECONDS,
    MAX_QUIET_SECONDS,
    MAX_REFUSALS,
    note_consent,
    note_dead_letter,
)
from annals.projections.subscriptions.decisions.sink_status import note_outcome as note
from annals.projections.subscriptions.ports import ValidationPolicy
from annals.projections.subscriptions.sequence import sequence_of, sequence_text
from annals.projections.subscriptions.state.delivery_record import DeliveryRecord, SavedDelivery
from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange
from tests.projections.subscriptions.decisions.log_messages import message

NOW = 1_800_000_000.0
UNTIL = datetime.fromtimestamp(NOW + 60, UTC)
RETRY = Outcome(DeliveryResult.RETRY)
#: What a record says after a first failure.
FAILING = {"failing": NOW, "failed": NOW}


def subscription(**more: Any) -> Subscription:
    attributes = {"sink": "http://sink.example/", "protocol": "HTTP", "protocolsettings": {}, "config": {}}
    facts = {"id": "s", "owner": "o", "position": 1, "since": 1, "first_position": 1, "epoch": 1, "is_paused": False}
    return Subscription(**{**facts, "attributes": attributes, **more})


def state(policy: ValidationPolicy = "off", **facts: Any) -> DeliveryState:
    found = DeliveryState(subscription(), (), None, policy)
    apply_change(found, SubscriptionChange("s", 1, 1, subscription()))
    for name, value in facts.items():
        setattr(found.record, name, value)
    return found


def action(name: str, **more: Any) -> SubscriptionChange:
    return SubscriptionChange("s", 2, 9, subscription(position=9, action={"name": name, **more}))


#: Rule, record before, outcome, and the members that change (8.3; SUB-821, SUB-822).
OUTCOMES = [
    (
        "success ends what failed",
        {"failing": 1.0, "dead": 3},
        Outcome(DeliveryResult.DELIVERED),
        {"failing": 0.0, "dead": 0},
    ),
    ("success ends a refusal", {"state": "unauthorized"}, Outcome(DeliveryResult.DELIVERED), {"state": ""}),
    ("success ends no suspension", {"state": "suspended"}, Outcome(DeliveryResult.DELIVERED), {}),
    ("failing since", {}, RETRY, FAILING),
    ("a sink says when", {}, Outcome(DeliveryResult.RETRY, retry_at=UNTIL), FAILING | {"hold": NOW + 60}),
    ("gone", {}, Outcome(DeliveryResult.GONE), FAILING | {"state": "gone"}),
    ("unauthorized", {}, Outcome(DeliveryResult.UNAUTHORIZED), FAILING | {"state": "unauthorized"}),
    ("another failure ends a refusal", {"state": "unauthorized"}, RETRY, FAILING | {"state": ""}),
    ("still refused", {"state": "unauthorized"}, Outcome(DeliveryResult.UNAUTHORIZED), FAILING),
    ("still gone", {"state": "gone"}, Outcome(DeliveryResult.UNAUTHORIZED), FAILING),
    (
        "72 hours",
        {"failing": NOW - MAX_FAILING_SECONDS, "failed": NOW - MAX_QUIET_SECONDS},
        RETRY,
        {"failed": NOW, "state": "suspended"},
    ),
    (
        "not yet 72 hours",
        {"failing": NOW - MAX_FAILING_SECONDS + 1, "failed": NOW - 1},
        RETRY,
        {"failed": NOW},
    ),
    (
        "72 hours in which nothing was attempted",
        {"failing": NOW - MAX_FAILING_SECONDS, "failed": NOW - MAX_QUIET_SECONDS - 1},
        RETRY,
        FAILING,
    ),
]


@pytest.mark.parametrize(("before", "outcome", "differs"), [row[1:] for row in OUTCOMES], ids=[r[0] for r in OUTCOMES])
def test_an_outcome_sets_the_sink_status(before: dict[str, Any], outcome: Outcome, differs: dict[str, Any]) -> None:
    facts = DeliveryRecord(**before)
    note(facts, outcome, "words", NOW)
    noted = {"lastsuccess": NOW} if outcome.result is DeliveryResult.DELIVERED else {"lasterror": error(outcome)}
    assert facts == DeliveryRecord(**{**before, **noted, **differs})


def error(outcome: Outcome) -> dict[str, Any]:
    return {"time": NOW, "code": outcome.code, "message": "words"}


def test_many_dead_letters_in_a_row_suspend() -> None:
    # SUB-822: fifty in a row
    facts = DeliveryRecord()
    for _ in range(MAX_DEAD_LETTERS - 1):
        note_dead_letter(facts)
    before = facts.state
    assert before == ""
    note_dead_letter(facts)
    assert facts.state == "suspended"


def test_consent_is_withdrawn_by_several_refusals_only() -> None:
    # SUB-712: a sink that has consented gets deliveries until it has refused three times
    facts = DeliveryRecord()
    assert note_consent(facts, True, 60) and (facts.consent, facts.rate) == ("validated", 60)
    assert [note_consent(facts, False, None) for _ in range(MAX_REFUSALS)] == [False, False, True]
    assert (facts.consent, facts.rate) == ("unvalidated", 0)
    assert note_consent(facts, True, None) and facts.refusals == 0


def test_a_change_is_applied_once() -> None:
    # SUB-804: an event of the stream that was applied before changes nothing
    found = state()
    assert apply_change(found, SubscriptionChange("s", 1, 1, subscription(is_paused=True))) is None
    assert found.stop_reason == ""
    assert apply_change(found, SubscriptionChange("s", 2, 5, subscription(is_paused=True))) == Effect.NONE
    assert (found.stop_reason, found.position) == ("paused", 5)


def waiting(count: int) -> tuple[DeliveryState, list[QueuedEvent]]:
    """A state whose events, the first of the log, all wait for a retry. It was written."""
    found = state()
    live = found.queues[LIVE]
    for position in range(1, count + 1):
        live.offer(message(position), f"k{position}", 1)
    events = live.take_events(count)
    for event in events:
        live.begin_attempt(event, NOW)
        live.count_attempt(event)
        live.schedule_retry(event, NOW + 60)
    update = found.state_update(NOW)
    assert len(update.pending_rows()) == count and found.record.retrying
    found.mark_written(update)
    return found, events


def test_a_write_looks_only_at_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-806: however many events wait
    found, [first, second, *_] = waiting(500)
    made: list[PendingEvent] = []

    def make(*row: Any) -> PendingEvent:
        made.append(PendingEvent(*row))
        return made[-1]

    monkeypatch.setattr(delivery_queue, "PendingEvent", make)
    live = found.queues[LIVE]
    live.release_due(NOW + 60)
    assert live.take_events(2) == [first, second]
    live.complete(first)
    live.count_attempt(second)
    live.schedule_retry(second, NOW + 90)
    update = found.state_update(NOW)
    assert [row[2:] for row in update.pending_rows()] == [(second.sequence, "k2", 2, NOW, NOW + 90)]
    assert update.settled_keys() == [("s", LIVE, first.sequence)]
    assert len(made) <= 2
    found.mark_written(update)
    assert not found.state_update(NOW).pending


@pytest.mark.parametrize("is_written", [True, False])
def test_what_changes_during_a_write_is_in_the_next(is_written: bool) -> None:
    # SUB-801, 802: with what that write had, if it failed
    found, [first, second, _] = waiting(3)
    live = found.queues[LIVE]
    live.release_due(NOW + 60)
    live.take_events(2)
    live.schedule_retry(first, NOW + 90)
    update = found.state_update(NOW)
    live.complete(second)
    if is_written:
        found.mark_written(update)
    update = found.state_update(NOW)
    assert [row[2] for row in update.pending_rows()] == ([] if is_written else [first.sequence])
    assert update.settled_keys() == [("s", LIVE, second.sequence)]


def test_a_write_that_failed_may_have_reached_the_table() -> None:
    # SUB-802: so what it added is deleted once it is settled; what no write had needs no deletion
    found = state()
    live = found.queues[LIVE]
    for position in (1, 2):
        live.offer(message(position), f"k{position}", 1)
    [first] = live.take_events(1)
    assert len(found.state_update(NOW).pending_rows()) == 1
    [second] = live.take_events(1)
    live.complete(first)
    live.complete(second)
    assert found.state_update(NOW).settled_keys() == [("s", LIVE, first.sequence)]


def test_a_replaced_queue_leaves_no_rows() -> None:
    # SUB-802: neither one that begins elsewhere, nor a replay that ended
    found, events = waiting(3)
    apply_change(found, SubscriptionChange("s", 2, 9, subscription(since=9, epoch=2)))
    update = found.state_update(NOW)
    assert not update.pending_rows()
    assert set(map(tuple, update.settled_keys())) == {("s", LIVE, event.sequence) for event in events}
    saved = SavedDelivery(1, 1, 0, DeliveryRecord(), {REPLAY: [PendingEvent(700, "k", 1, NOW, NOW)]})
    found = DeliveryState(subscription(), (), saved, "off")
    assert found.state_update(NOW).settled_keys() == [("s", REPLAY, 700)]


def test_an_update_resumes_and_reads_again() -> None:
    # SUB-822: an update by the owner lifts a suspension; the hold of the old sink does not apply to the new one
    found = state(state="suspended", dead=7, failing=1.0, hold=NOW)
    elsewhere = {**found.subscription.attributes, "sink": "http://other.example/"}
    effect = apply_change(found, SubscriptionChange("s", 2, 9, subscription(epoch=2, attributes=elsewhere)))
    assert effect == Effect.REOPEN_SINK | Effect.READ_LOG
    facts = found.record
    assert (facts.state, facts.dead, facts.failing, facts.hold, facts.epoch) == ("", 0, 0.0, 0.0, 2)


def test_an_update_without_another_sink_ends_no_wait() -> None:
    # 8.3: no request before the time that the sink asked for
    found = state(hold=NOW)
    apply_change(found, SubscriptionChange("s", 2, 9, subscription(epoch=2)))
    assert (found.record.epoch, found.record.hold) == (2, NOW)


def test_actions() -> None:
    # SUB-833: resume, verify, replay, redeliver and discard
    found = state(state="gone", hold=NOW)
    assert apply_change(found, action("resume")) == Effect.REOPEN_SINK
    assert (found.record.state, found.record.hold) == ("", 0.0)
    found = state(state="credentialexpired")
    apply_change(found, action("resume"))
    assert found.record.state == "credentialexpired"  # SUB-308
    assert apply_change(state(), action("verify")) == Effect.REQUEST_CONSENT
    found = state()
    assert apply_change(found, action("replay", **{"from": 3})) == Effect.READ_LOG
    assert found.record.replay == {"from": 3, "to": 9, "parallel": False}
    assert (found.queues[REPLAY].cursor, found.queues[REPLAY].end, found.is_parallel) == (2, 9, False)
    found = state()
    assert apply_change(found, action("redeliver", sequence=sequence_text(sequence_of(7, 0)))) == Effect.NONE
    assert len(found.queues[DEAD_LETTERS]) == found.pending == 1 and len(found.queues[LIVE]) == 0
    discard = action("discard", sequence=sequence_text(sequence_of(7, 0)))
    assert apply_change(found, discard._replace(revision=3)) == Effect.NONE
    assert (found.pending, found.dead_letters) == (0, [sequence_of(7, 0)])


@pytest.mark.parametrize(
    ("policy", "consent", "asks", "awaits"),
    [
        ("off", "", False, False),
        ("optional", "", True, True),
        ("optional", "unvalidated", True, False),
        ("required", "unvalidated", True, True),
        ("required", "validated", True, False),
    ],
)
def test_consent_holds_deliveries_back(policy: ValidationPolicy, consent: str, asks: bool, awaits: bool) -> None:
    # SUB-711 to 714: whether consent is requested, and whether deliveries wait for it
    found = state(policy, consent=consent)
    assert (found.needs_consent_request, found.is_awaiting_consent) == (asks, awaits)
    assert found.stop_reason == ("pendingvalidation" if awaits else "")
    assert found.origin("https://us.example") == ("https://us.example" if consent == "validated" else "")
