"""The changes that an event of a subscription's own stream makes to its delivery state.

These functions change the state only; other necessary work is returned as an `Effect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from typing import Any

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.subscriptions.decisions.delivery_plan import DeliveryPlan
from annals.projections.subscriptions.decisions.delivery_queue import (
    DEAD_LETTERS,
    LIVE,
    REPLAY,
    DeliveryQueue,
    QueuedEvent,
)
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.sequence import parse_sequence
from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange


class Effect(Flag):
    """Work that remains after a state change.

    REOPEN_SINK: the next request must use the new settings, and does not wait for a retry of the credential.
    REQUEST_CONSENT: the worker must ask the sink for consent soon.
    READ_LOG: the queues start at another place of the log.
    """

    NONE = 0
    REOPEN_SINK = auto()
    REQUEST_CONSENT = auto()
    READ_LOG = auto()


def apply_change(state: DeliveryState, change: SubscriptionChange) -> Effect | None:
    """Applies the next event of the subscription's stream. None for a deletion or an event that was applied before."""
    subscription = change.subscription
    if subscription is None or change.revision <= state.revision:
        return None
    state.subscription = subscription
    state.revision, state.position = change.revision, change.position
    if subscription.epoch != state.record.epoch:
        return _apply_update(state, subscription)
    return _apply_action(state, subscription.action) if subscription.action else Effect.NONE


def _apply_update(state: DeliveryState, subscription: Subscription) -> Effect:
    """Applies an update by the owner, which may have fixed what stopped the deliveries."""
    record = state.record
    state.plan = DeliveryPlan.from_subscription(subscription, state.families)
    if record.since != subscription.since:
        record.since = subscription.since
        state.replace_queue(LIVE, DeliveryQueue(subscription.first_position - 1))
    if record.sink != state.plan.sink_hash:
        record.sink, record.consent, record.rate, record.checked, record.refusals = state.plan.sink_hash, "", 0, 0.0, 0
        record.bucket, record.reason = None, ""
        _end_waits(state)
    record.epoch = subscription.epoch
    record.expires, record.stored = 0.0, False
    _resume(state)
    record.state = ""  # also that of an unusable credential, which the update may have replaced
    for queue in state.queues.values():
        queue.rewind()
    return Effect.REOPEN_SINK | Effect.READ_LOG


def _apply_action(state: DeliveryState, action: Mapping[str, Any]) -> Effect:
    """Applies an action that the owner requested. A pause is part of the subscription itself."""
    match action["name"]:
        case "resume":
            _end_waits(state)
            _resume(state)
            return Effect.REOPEN_SINK
        case "verify":
            return Effect.REQUEST_CONSENT
        case "replay":
            _replay(state, action)
            return Effect.READ_LOG
        case "redeliver":
            _redeliver(state, parse_sequence(str(action["sequence"])))
        case "discard":
            _discard(state, parse_sequence(str(action["sequence"])))
    return Effect.NONE


def _resume(state: DeliveryState) -> None:
    """Ends what stopped the deliveries, but for an unusable credential: only a usable one ends that (SUB-308)."""
    record = state.record
    if record.state in ("gone", "suspended"):
        _end_waits(state)
    if record.state != "credentialexpired":
        record.state = ""
    record.dead, record.failing = 0, 0.0


def _end_waits(state: DeliveryState) -> None:
    """Makes new attempts possible at once, also if the sink asked for a later time."""
    state.record.hold = 0.0
    for queue in state.queues.values():
        queue.end_waits()


def _replay(state: DeliveryState, action: Mapping[str, Any]) -> None:
    first_position = int(action["from"])
    requested_end = action.get("to")
    end = state.position if requested_end is None else int(requested_end)
    state.replace_queue(REPLAY, DeliveryQueue(first_position - 1, end=end))
    state.record.replay = {"from": first_position, "to": end, "parallel": bool(action.get("parallel"))}


def _redeliver(state: DeliveryState, sequence: int | None) -> None:
    """Gives a dead letter a new set of attempts, regardless of the order of other events."""
    if sequence is not None and sequence not in state.queues[DEAD_LETTERS]:
        state.queues[DEAD_LETTERS].add(QueuedEvent(sequence, f"#{sequence}"))


def _discard(state: DeliveryState, sequence: int | None) -> None:
    """Removes a dead letter. A running attempt is not interrupted."""
    if sequence is not None:
        state.queues[DEAD_LETTERS].discard(sequence)
        state.dead_letters.append(sequence)
