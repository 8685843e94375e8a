"""The delivery status of subscriptions, read from the tables by any process and any thread.

Spec: 8.4, 8.5; rules SUB-509, 714, 831, 841.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, Protocol

from annals.commands.store.clock import format_time
from annals.domain.access.roles import CanRead
from annals.domain.subscriptions.subscription import Subscription
from annals.projections.database.drivers import Database
from annals.projections.database.state_database import StateDatabase, create_tables
from annals.projections.events.event_families import EventFamily
from annals.projections.log.reader import Log
from annals.projections.subscriptions.decisions.delivery_plan import DeliveryPlan
from annals.projections.subscriptions.decisions.delivery_queue import BEYOND_ALL_SEQUENCES
from annals.projections.subscriptions.event_messages import EventMessage, EventMessageReader
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.sequence import parse_sequence, position_of, sequence_text
from annals.projections.subscriptions.state import delivery_queries, tables
from annals.projections.subscriptions.state.delivery_record import (
    AttemptRecord,
    DeadLetter,
    DeliveryRecord,
    SavedDelivery,
)
from annals.projections.subscriptions.workers.consent_checker import hash_secret

Members = Mapping[str, Any]

_SELECT_DEAD_LETTERS: Final = (
    "SELECT sequence, reason, code, message, attempts, first, last FROM delivery_deadletter"
    " WHERE subscription = ? AND sequence {} ? ORDER BY sequence LIMIT ?"
)
_COUNT_DEAD_LETTERS: Final = "SELECT count(*) FROM delivery_deadletter WHERE subscription = ?"
_TAKE_CALLBACK: Final = (
    "DELETE FROM delivery_callback WHERE digest = ? AND subscription = ? AND until BETWEEN ? AND ?"
    " RETURNING subscription"
)
_SELECT_ATTEMPTS: Final = (
    "SELECT number, time, sequence, outcome, code, duration, next FROM delivery_attempt"
    " WHERE subscription = ? AND number < ? AND time >= ? ORDER BY number DESC LIMIT ?"
)
_SELECT_HOURS: Final = (
    f"SELECT hour, {', '.join(tables.OUTCOMES)} FROM delivery_hour WHERE subscription = ? AND hour >= ?"
    " ORDER BY hour DESC"
)
_SELECT_POSITION: Final = "SELECT position FROM delivery_state WHERE subscription = ?"
_SELECT_RECORD: Final = "SELECT facts FROM delivery_state WHERE subscription = ?"
_HAS_HOLDER: Final = "SELECT 1 FROM delivery_lease WHERE subscription = ?"
#: Seconds between two checks whether a deliverer has applied a change, and those for which an answer waits for it.
_POLL_SECONDS: Final = 0.02
_APPLY_SECONDS: Final = 2.0


class LocalDeliverer(Protocol):
    """The deliverer of this process."""

    def progress(self, id: str) -> tuple[int, int] | None: ...
    def apply_requests_soon(self) -> None: ...


class StoredDeliveries:
    """Delivery status, dead letters and consent of subscriptions.

    local: the deliverer of this process; it knows progress that is not in the tables yet.
    """

    def __init__(
        self, url: str, ports: DeliveryPorts, families: Sequence[EventFamily], local: LocalDeliverer | None = None
    ) -> None:
        self._url = url
        self._ports = ports
        self._families = families
        self._local = local
        self._store = StateDatabase(url)
        self._lock = Lock()
        self._has_tables = False

    def status(self, subscription: Subscription) -> Members:
        """The delivery status of a subscription (8.5)."""
        with self._reading() as db:
            saved = delivery_queries.load_progress(db, subscription.id)
            dead_letter_count = db.one(_COUNT_DEAD_LETTERS, (subscription.id,))[0]
            head = Log(db).head().last
        saved = saved or SavedDelivery(0, 0, subscription.first_position - 1, DeliveryRecord(), {})
        progress = self._local.progress(subscription.id) if self._local is not None else None
        cursor, pending = progress or (saved.cursor, saved.record.pending)
        return self._status(subscription, saved, (min(cursor, head), pending), dead_letter_count, head)

    def is_replaying(self, subscription: Subscription) -> bool:
        """Whether a replay is running, or was requested and has not started yet (SUB-834)."""
        with self._reading() as db:
            saved = delivery_queries.load_progress(db, subscription.id)
        if _requested_replay(subscription, saved) is not None:
            return True
        return saved is not None and saved.record.replay is not None

    def deadletters(self, id: str, after: str, limit: int, can_read: CanRead) -> Sequence[Members]:
        """Dead letters after a `sequence`, in order, each with its event if the caller can read its entity."""
        after_sequence = parse_sequence(after)
        with self._reading() as db:
            rows = db.all(
                _SELECT_DEAD_LETTERS.format(">"), (id, -1 if after_sequence is None else after_sequence, limit)
            )
            return list(self._dead_letters(db, _read_dead_letters(rows), can_read))

    def deadletter(self, id: str, sequence: str, can_read: CanRead) -> Members | None:
        """One dead letter, with its event if the caller can read its entity."""
        number = parse_sequence(sequence)
        if number is None:
            return None
        with self._reading() as db:
            rows = db.all(_SELECT_DEAD_LETTERS.format("="), (id, number, 1))
            return next(self._dead_letters(db, _read_dead_letters(rows), can_read), None)

    def attempts(self, id: str, before: int | None, limit: int, can_read: CanRead) -> Sequence[Members]:
        """Attempts before a number, the newest first, each with its event as dead letters have it (UI-111)."""
        oldest = self._ports.clock.now() - tables.ATTEMPT_SECONDS
        with self._reading() as db:
            rows = db.all(_SELECT_ATTEMPTS, (id, BEYOND_ALL_SEQUENCES if before is None else before, oldest, limit))
            return list(self._attempts(db, _read_attempts(rows), can_read))

    def hours(self, id: str) -> Sequence[Members]:
        """The number of attempts in each hour with attempts, by outcome, the newest first."""
        oldest = int(self._ports.clock.now() - tables.ATTEMPT_SECONDS) // 3600
        with self._reading() as db:
            rows = db.all(_SELECT_HOURS, (id, oldest))
        return [
            {"time": _time_text(hour * 3600.0), **dict(zip(tables.OUTCOMES, counts, strict=True))}
            for hour, *counts in rows
            if delivery_queries.has_column_types((hour, *counts), delivery_queries.HOUR_TYPES)
        ]

    def redeliver(self, id: str, sequence: str) -> None:
        """Does nothing: the deliverer reads the request from the log, where it was recorded."""

    def discard(self, id: str, sequence: str) -> None:
        """Deletes a dead letter at once. The deliverer deletes it too, when it reads the request from the log."""
        number = parse_sequence(sequence)
        if number is not None:
            with self._ready(), self._store.writing() as db:
                db.delete(tables.deadletter, [(id, number)])

    def consent(self, id: str, secret: str, rate: int | None) -> bool:
        """Whether a callback's secret is valid. Each secret works once and records the sink's consent (SUB-714)."""
        if "\0" in id:
            return False
        with self._ready(), self._store.writing() as db:
            sink_hash = _applied_sink_hash(db, id)
            digest = hash_secret(secret, sink_hash)
            if not db.all(_TAKE_CALLBACK, (digest, id, self._ports.clock.now(), tables.NEVER)):
                return False
            # The deliverer compares the sink again, because the owner may just have changed it.
            db.upsert(tables.request, [(id, "consent", sink_hash if rate is None else f"{sink_hash} {rate}")])
        if self._local is not None:
            self._local.apply_requests_soon()
        return True

    def wait_until_applied(self, subscription: Subscription, *, needs_row: bool = False) -> bool:
        """Whether the deliverer has applied the log's changes to a subscription up to the subscription's position.

        A deliverer in this process has applied them before any command is answered, and writes its row soon after;
        those in other processes poll the log continuously. Also True when no process delivers for the subscription.
        needs_row: wait for the row, from which the status is read.
        """
        if not needs_row and self._local is not None and self._local.progress(subscription.id) is not None:
            return True
        deadline = time.monotonic() + _APPLY_SECONDS
        while not self._is_applied(subscription):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def close(self) -> None:
        """Closes the database connection."""
        with self._lock:
            self._store.close()

    def _is_applied(self, subscription: Subscription) -> bool:
        with self._reading() as db:
            if db.one(_HAS_HOLDER, (subscription.id,)) is None:
                return True
            row = db.one(_SELECT_POSITION, (subscription.id,))
            return row is not None and row[0] >= subscription.position

    def _status(
        self,
        subscription: Subscription,
        saved: SavedDelivery,
        progress: tuple[int, int],
        dead_letter_count: int,
        head: int,
    ) -> Members:
        (cursor, pending), record, plan = (
            progress,
            saved.record,
            DeliveryPlan.from_subscription(subscription, self._families),
        )
        needs_validation = plan.needs_consent and self._ports.policy != "off" and self._ports.validator is not None
        status: dict[str, Any] = {
            "state": _state_text(subscription, record),
            "position": cursor,
            "headposition": head,
            "lag": head - cursor,
            "pending": pending,
            "deadletters": dead_letter_count,
            "lastsuccess": _time_text(record.lastsuccess),
            "lastattempt": _time_text(record.lastattempt),
            "nextattempt": _time_text(record.nextattempt),
            "lasterror": {**record.lasterror, "time": _time_text(record.lasterror["time"])}
            if record.lasterror
            else None,
            "guarantee": plan.guarantee(record.stored),
            "validation": _validation_members(record) if needs_validation else None,
            "webhookconformant": plan.is_webhook_conformant,
        }
        if (requested := _requested_replay(subscription, saved)) is not None:
            status["replay"] = {
                "from": requested["from"],
                "to": requested.get("to", head),
                "position": requested["from"] - 1,
            }
        elif record.replay is not None:
            status["replay"] = {
                "from": record.replay["from"],
                "to": record.replay["to"],
                "position": record.replay["cursor"],
            }
        return {name: value for name, value in status.items() if value is not None}

    def _read_events(self, db: Database, sequences: Sequence[int], can_read: CanRead) -> dict[int, EventMessage]:
        """The events with some numbers whose entities the caller can read, from the log."""
        found = EventMessageReader(lambda: Log(db), self._families).read_again(sequences)
        return {sequence: event for sequence, event in found.items() if can_read(event.message.xid)}

    def _dead_letters(self, db: Database, dead_letters: Sequence[DeadLetter], can_read: CanRead) -> Iterator[Members]:
        """Dead letters as JSON."""
        events = self._read_events(db, [dead_letter.sequence for dead_letter in dead_letters], can_read)
        for dead_letter in dead_letters:
            members: dict[str, Any] = {
                "sequence": sequence_text(dead_letter.sequence),
                "position": position_of(dead_letter.sequence),
            }
            if (event := events.get(dead_letter.sequence)) is not None:
                names = ("id", "source", "type", "subject", "time")
                members["event"] = {name: event.attributes[name] for name in names}
            yield members | {
                "reason": dead_letter.reason,
                "code": dead_letter.code,
                "message": dead_letter.message,
                "attempts": dead_letter.attempts,
                "firstattempt": _time_text(dead_letter.first),
                "lastattempt": _time_text(dead_letter.last),
            }

    def _attempts(self, db: Database, attempts: Sequence[AttemptRecord], can_read: CanRead) -> Iterator[Members]:
        """Attempts as JSON."""
        events = self._read_events(db, [attempt.sequence for attempt in attempts], can_read)
        for attempt in attempts:
            event = events.get(attempt.sequence)
            members = {
                "number": attempt.number,
                "time": _time_text(attempt.time),
                "sequence": sequence_text(attempt.sequence),
                "event": event.attributes["id"] if event else None,
                "subject": event.attributes["subject"] if event else None,
                "outcome": attempt.outcome,
                "code": attempt.code or None,
                "duration": round(attempt.duration * 1000, 3),
                "next": _time_text(attempt.next or 0.0),
            }
            yield {name: value for name, value in members.items() if value is not None}

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        with self._ready(), self._store.reading() as db:
            yield db

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Locks the connection for the calling thread and creates the tables if needed."""
        with self._lock:
            if not self._has_tables:
                create_tables(self._url, tables.METADATA)
                self._has_tables = True
            yield


def _requested_replay(subscription: Subscription, saved: SavedDelivery | None) -> Mapping[str, Any] | None:
    """The action that asks for a replay which has not begun; None if there is none."""
    action = subscription.action or {}
    is_applied = saved is not None and saved.position >= action.get("position", subscription.position)
    return action if action.get("name") == "replay" and not is_applied else None


def _read_dead_letters(rows: Sequence[Sequence[Any]]) -> list[DeadLetter]:
    """The rows that can be read."""
    return [
        DeadLetter(*row) for row in rows if delivery_queries.has_column_types(row, delivery_queries.DEAD_LETTER_TYPES)
    ]


def _read_attempts(rows: Sequence[Sequence[Any]]) -> list[AttemptRecord]:
    """The rows that can be read."""
    return [
        AttemptRecord(*row) for row in rows if delivery_queries.has_column_types(row, delivery_queries.ATTEMPT_TYPES)
    ]


def _state_text(subscription: Subscription, record: DeliveryRecord) -> str:
    if subscription.is_paused:
        return "paused"
    if record.state in ("gone", "suspended"):
        return record.state
    if record.waiting:
        return "pendingvalidation"
    return record.state or ("retrying" if record.retrying else "active")


def _validation_members(record: DeliveryRecord) -> Members:
    """The sink's answer to the validation handshake. allowedrate: requests a minute. reason: why it is no consent."""
    validation: dict[str, Any] = {"state": record.consent or "pending"}
    details = {"allowedrate": record.rate, "reason": record.reason}
    return validation | {name: value for name, value in details.items() if value}


def _applied_sink_hash(db: Database, id: str) -> str:
    """The hash of the sink that the deliverer last applied; empty if there is none or it cannot be read."""
    row = db.one(_SELECT_RECORD, (id,))
    try:
        return DeliveryRecord.from_json(row[0]).sink if row else ""
    except (ValueError, TypeError):
        return ""


def _time_text(seconds: float) -> str | None:
    return format_time(datetime.fromtimestamp(seconds, UTC)) if seconds else None
