"""The delivery state of one subscription in memory: its settings, its queues and its DeliveryRecord.

Nothing here sends, waits or reads a clock. A `StateUpdate` carries the changes to the tables.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.events.event_families import EventFamily
from annals.projections.subscriptions.decisions.attempt_log import AttemptLog, HourCounts
from annals.projections.subscriptions.decisions.delivery_plan import DeliveryPlan
from annals.projections.subscriptions.decisions.delivery_queue import (
    BEYOND_ALL_SEQUENCES,
    DEAD_LETTERS,
    LIVE,
    REPLAY,
    DeliveryQueue,
)
from annals.projections.subscriptions.decisions.pending_changes import PendingChanges
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.ports import ValidationPolicy
from annals.projections.subscriptions.state.delivery_queries import StateUpdate
from annals.projections.subscriptions.state.delivery_record import DeadLetter, DeliveryRecord, SavedDelivery


class DeliveryState:
    """The delivery state of one subscription.

    busy_keys: keys of events that are being attempted.
    dead_letters: dead letters to store; a bare sequence is one to delete.
    callbacks: hashes of secrets with which a sink may consent later, with their expiry times; not stored yet.
    """

    def __init__(
        self,
        subscription: Subscription,
        families: Sequence[EventFamily],
        saved: SavedDelivery | None,
        policy: ValidationPolicy,
    ) -> None:
        """saved: the stored state. policy: whether to ask sinks for consent, and whether consent is required."""
        self.id = subscription.id
        self.families = families
        self.subscription = subscription
        self.plan = DeliveryPlan.from_subscription(subscription, families)
        self.record = saved.record if saved else DeliveryRecord()
        self.attempts = AttemptLog(self.record)
        self.revision = saved.revision if saved else 0
        self.position = saved.position if saved else 0
        self.queues: dict[int, DeliveryQueue] = {DEAD_LETTERS: DeliveryQueue(0, BEYOND_ALL_SEQUENCES, end=0)}
        self.busy_keys: dict[str, None] = {}
        self.dead_letters: list[DeadLetter | int] = []
        self.callbacks: list[tuple[str, float]] = []
        self._policy = policy
        self._is_written = saved is not None
        pending = saved.pending if saved else {}
        self._pending_changes = PendingChanges(
            (number, each.sequence) for number in pending for each in pending[number]
        )
        self._unwritten_keys: dict[str, None] = {}
        self._batch_limit: int | None = None  # None for that of the settings
        if saved:
            self._restore(saved)
        self.queues.setdefault(LIVE, DeliveryQueue(subscription.first_position - 1))

    def _restore(self, saved: SavedDelivery) -> None:
        self.queues[LIVE] = DeliveryQueue(saved.cursor, saved.record.reach)
        if replay := saved.record.replay:
            self.queues[REPLAY] = DeliveryQueue(replay["cursor"], replay["reach"], replay["to"])
        for number, pending in saved.pending.items():
            if number in self.queues:
                self.queues[number].restore(pending)
            else:
                self._pending_changes.mark_queue(number)

    # --- events ------------------------------------------------------------------------------------------------------

    def offer(self, number: int, event: EventMessage) -> bool:
        """Adds an event to a queue. Returns whether there is room for more."""
        queue = self.queues[number]
        queue.offer(event, self.plan.ordering_key(event), self.plan.position)
        return queue.has_room()

    def replace_queue(self, number: int, queue: DeliveryQueue) -> None:
        """Begins a range of the log in the place of another one."""
        self.queues[number] = queue
        self._pending_changes.mark_queue(number)

    def end_replay(self) -> None:
        """Removes the queue of a finished replay."""
        del self.queues[REPLAY]
        self._pending_changes.mark_queue(REPLAY)
        self.record.replay = None

    # --- permission to attempt ---------------------------------------------------------------------------------------

    @property
    def stop_reason(self) -> str:
        """Why nothing is attempted until the owner or the sink acts; empty if nothing blocks deliveries."""
        if self.subscription.is_paused:
            return "paused"
        if self.record.state in ("gone", "suspended"):
            return self.record.state
        return "pendingvalidation" if self.is_awaiting_consent else ""

    @property
    def is_parallel(self) -> bool:
        """Whether new events are delivered now, instead of after a replay."""
        return self.record.replay is None or self.record.replay["parallel"]

    @property
    def batch_size(self) -> int:
        """Largest number of events of the next request."""
        return self.plan.batch_size if self._batch_limit is None else min(self._batch_limit, self.plan.batch_size)

    def limit_batches(self, size: int) -> None:
        """Limits the number of events of the next request. From the size in the settings on, it limits nothing."""
        self._batch_limit = size if size < self.plan.batch_size else None

    @property
    def blocked_keys(self) -> Set[str]:
        """Keys whose events may not be attempted now."""
        return self.busy_keys.keys() | self._unwritten_keys.keys() if self._unwritten_keys else self.busy_keys.keys()

    def block_key(self, key: str) -> None:
        """Blocks a key whose event was given up, until that is stored (SUB-811).

        Otherwise, after a crash, the given-up event would be retried after events that follow it.
        """
        self._unwritten_keys[key] = None

    # --- consent (SUB-711 to 714) ------------------------------------------------------------------------------------

    @property
    def needs_consent_request(self) -> bool:
        """Whether the deliverer requests the sink's consent."""
        return self._policy != "off" and self.plan.needs_consent

    @property
    def is_awaiting_consent(self) -> bool:
        """Whether deliveries wait for the sink's consent, or for the first request for consent."""
        consent = self.record.consent
        return self.needs_consent_request and consent != "validated" and (not consent or self._policy == "required")

    @property
    def is_unlimited(self) -> bool:
        """Whether the sink accepts any number of requests."""
        return not self.needs_consent_request or (self.record.consent == "validated" and not self.record.rate)

    def origin(self, configured_origin: str) -> str:
        """The value of `WebHook-Request-Origin`; empty until the sink has consented."""
        return configured_origin if self.record.consent == "validated" else ""

    # --- progress ----------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """The cursor of the live queue; see DeliveryQueue."""
        return self.queues[LIVE].cursor

    @property
    def pending(self) -> int:
        """Number of events that are queued or being sent, including those of replays and dead letters."""
        return sum(map(len, self.queues.values()))

    def state_update(self, now: float) -> StateUpdate:
        """The changes to write to the tables."""
        self._summarize(now)
        attempts, hours = self.attempts.unwritten()
        return StateUpdate(
            id=self.id,
            revision=self.revision,
            position=self.position,
            cursor=self.cursor,
            record_json=self.record.to_json(),
            is_first=not self._is_written,
            pending=self._pending_changes.collect(self.queues),
            dead_letters=tuple(self.dead_letters),
            callbacks=tuple(self.callbacks),
            keys=tuple(self._unwritten_keys),
            attempts=attempts,
            hours=hours,
        )

    def mark_written(self, update: StateUpdate) -> bool:
        """Records that an update is in the tables. Returns whether this unblocked keys."""
        self._is_written = True
        self._pending_changes.mark_written(update.pending)
        self.attempts.mark_written(update.attempts, [HourCounts(*hour) for hour in update.hours])
        del self.dead_letters[: len(update.dead_letters)]
        del self.callbacks[: len(update.callbacks)]
        if update.keys:
            self._unwritten_keys = {key: None for key in self._unwritten_keys if key not in update.keys}
        return bool(update.keys)

    def _summarize(self, now: float) -> None:
        """Updates the members of the DeliveryRecord that follow from the queues."""
        record = self.record
        record.reach = self.queues[LIVE].reach
        record.pending = self.pending
        record.retrying = any(queue.is_retrying for queue in self.queues.values())
        record.waiting = self.is_awaiting_consent
        next_retries = [next_retry for queue in self.queues.values() if (next_retry := queue.next_retry) is not None]
        record.nextattempt = max(min(next_retries, default=0.0), record.hold if record.hold > now else 0.0)
        if (replay := self.queues.get(REPLAY)) is not None and record.replay:
            record.replay |= {"cursor": replay.cursor, "reach": replay.reach}
