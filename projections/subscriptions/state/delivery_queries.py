"""Reads and writes the delivery state of subscriptions in its tables.

A process reads the state when it takes a subscription over, and writes it in batches. A batch writes only subscriptions
whose lease the process holds, which the same transaction checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, NamedTuple

from annals.commands.store.damage import report_once
from annals.projections.database.drivers import Database, Values
from annals.projections.log.reader import Log
from annals.projections.subscriptions.decisions.delivery_queue import BEYOND_ALL_SEQUENCES, QUEUE_NUMBERS, PendingEvent
from annals.projections.subscriptions.sequence import position_of
from annals.projections.subscriptions.state import tables
from annals.projections.subscriptions.state.delivery_record import (
    AttemptRecord,
    DeadLetter,
    DeliveryRecord,
    SavedDelivery,
)

_SELECT_STATES: Final = "SELECT subscription, revision, position, cursor, facts FROM delivery_state WHERE {}"
_SELECT_PENDING: Final = (
    "SELECT subscription, queue, sequence, key, attempts, first, next FROM delivery_pending WHERE {}"
)
_SELECT_LAST_PENDING: Final = "SELECT max(sequence) FROM delivery_pending WHERE subscription = ? AND queue = ?"
_DELETE_PENDING: Final = "DELETE FROM delivery_pending WHERE {}"
_HELD_SUBSCRIPTIONS: Final = "SELECT subscription FROM delivery_lease WHERE process = ? AND {}"
_DELETED_SUBSCRIPTIONS: Final = (
    "SELECT subscription FROM delivery_state WHERE '!subscriptions!' || subscription NOT IN"
    " (SELECT tree_key FROM head WHERE type = 'subscriptions' AND live)"
)
#: Tables with rows per subscription, the leases last.
_SUBSCRIPTION_TABLES: Final = tuple(
    table.name for table in tables.METADATA.tables.values() if "subscription" in table.c
)

ColumnTypes = tuple[tuple[type, ...], ...]
Rows = Sequence[Values]
#: The queue number and sequence of a pending event.
PendingKey = tuple[int, int]
#: Changed pending events; None for one that is not pending any more.
PendingEvents = Mapping[PendingKey, PendingEvent | None]


@dataclass(slots=True)
class StateUpdate:
    """The changes to write about one subscription.

    is_first: whether rows of pending events that are there already belong to a state that could not be read.
    pending: pending events that changed.
    dead_letters: dead letters to store; a bare sequence is one to delete.
    callbacks: hashes of secrets and their expiry times.
    keys: ordering keys that stay blocked until this is written.
    attempts: attempts to store; hours: the numbers of attempts in hours, see `AttemptLog`.
    """

    id: str
    revision: int
    position: int
    cursor: int
    record_json: str
    is_first: bool
    pending: PendingEvents
    dead_letters: Sequence[DeadLetter | int] = ()
    callbacks: Sequence[tuple[str, float]] = field(default=())
    keys: Sequence[str] = ()
    attempts: Sequence[AttemptRecord] = ()
    hours: Sequence[tuple[int, tuple[int, ...]]] = ()

    def state_rows(self) -> Rows:
        """The row of the subscription."""
        return [(self.id, self.revision, self.position, self.cursor, self.record_json)]

    def pending_rows(self) -> Rows:
        """The changed events that are pending."""
        return [(self.id, key[0], *event) for key, event in self.pending.items() if event is not None]

    def settled_keys(self) -> Rows:
        """The keys of events in the table that are not pending any more."""
        return [(self.id, *key) for key, event in self.pending.items() if event is None]

    def dead_letter_rows(self) -> Rows:
        """The dead letters to store."""
        return [(self.id, *change) for change in self._last_changes().values() if isinstance(change, DeadLetter)]

    def dropped_dead_letter_keys(self) -> Rows:
        """The keys of the dead letters to delete."""
        return [
            (self.id, sequence)
            for sequence, change in self._last_changes().items()
            if not isinstance(change, DeadLetter)
        ]

    def callback_rows(self) -> Rows:
        """The secrets with which a sink may consent."""
        return [(digest, self.id, expiry) for digest, expiry in self.callbacks]

    def attempt_rows(self) -> Rows:
        """The attempts, each in the place of an old one."""
        return [(self.id, attempt.number % tables.ATTEMPT_SLOTS, *attempt) for attempt in self.attempts]

    def hour_rows(self) -> Rows:
        """The numbers of attempts in hours."""
        return [(self.id, hour, *counts) for hour, counts in self.hours]

    def _last_changes(self) -> Mapping[int, DeadLetter | int]:
        """The last change of each dead letter: a batch may store, delete and store one again."""
        return {_sequence_of(change): change for change in self.dead_letters}


#: Column types of a state, of a pending event and of a dead letter. SQLite accepts any type in any column.
_STATE_TYPES: Final[ColumnTypes] = ((int,), (int,), (int,), (str,))
_PENDING_TYPES: Final[ColumnTypes] = ((int,), (str,), (int,), (int, float, NoneType), (int, float))
ATTEMPT_TYPES: Final[ColumnTypes] = (
    *((int,), (int, float), (int,), (str,), (str,), (int, float), (int, float, NoneType)),
)
HOUR_TYPES: Final[ColumnTypes] = ((int,),) * (1 + len(tables.OUTCOMES))
DEAD_LETTER_TYPES: Final[ColumnTypes] = ((int,), (str,), (str,), (str,), (int,), (int, float), (int, float))


def has_column_types(row: Sequence[Any], column_types: ColumnTypes) -> bool:
    """Whether values have their columns' types, and numbers are in the range of positions and times."""
    return all(
        isinstance(value, column_type) and (not isinstance(value, int | float) or abs(value) < BEYOND_ALL_SEQUENCES)
        for value, column_type in zip(row, column_types, strict=True)
    )


def _saved_delivery(row: Sequence[Any]) -> SavedDelivery | None:
    """A row of the state table, without pending events; None if it cannot be read."""
    revision, position, cursor, record_json = row
    try:
        return (
            SavedDelivery(revision, position, cursor, DeliveryRecord.from_json(record_json), {})
            if has_column_types(row, _STATE_TYPES)
            else None
        )
    except ValueError:
        return None


def load_deliveries(db: Database, ids: Collection[str]) -> dict[str, SavedDelivery]:
    """The stored deliveries by subscription id. Leaves out those that cannot be read or belong to another log."""
    deliveries = _load_states(db, ids)
    id_condition, id_parameter = db.in_list("subscription"), db.list_parameter(ids)
    for id, queue_number, *row in db.all(_SELECT_PENDING.format(id_condition), (id_parameter,)):
        if id in deliveries and has_column_types(row, _PENDING_TYPES) and queue_number in QUEUE_NUMBERS:
            deliveries[id].pending.setdefault(queue_number, []).append(PendingEvent(*row))
        elif id in deliveries:
            _report_pending(id)
            del deliveries[id]
    head = Log(db).head().last  # the log is read last, because a state is never ahead of its log
    sequences = {
        id: [event.sequence for pending_events in saved.pending.values() for event in pending_events]
        for id, saved in deliveries.items()
    }
    return {id: saved for id, saved in deliveries.items() if _is_of_log(id, saved, sequences[id], head)}


def load_progress(db: Database, id: str) -> SavedDelivery | None:
    """The stored delivery of a subscription, without its pending events. None if `load_deliveries` leaves it out.

    It looks at the last pending events only, so damage to others goes unnoticed.
    """
    if (saved := _load_states(db, [id]).get(id)) is None:
        return None
    rows = [db.one(_SELECT_LAST_PENDING, (id, number)) for number in QUEUE_NUMBERS]
    sequences = [sequence for [sequence] in rows if sequence is not None]
    if not all(has_column_types([sequence], ((int,),)) for sequence in sequences):
        _report_pending(id)
        return None
    return saved if _is_of_log(id, saved, sequences, Log(db).head().last) else None


def _load_states(db: Database, ids: Collection[str]) -> dict[str, SavedDelivery]:
    """The rows of the state table that can be read, without pending events."""
    deliveries: dict[str, SavedDelivery] = {}
    for id, *row in db.all(_SELECT_STATES.format(db.in_list("subscription")), (db.list_parameter(ids),)):
        if (saved := _saved_delivery(row)) is not None:
            deliveries[id] = saved
        else:
            report_once(f"the state of the subscription {id} cannot be read; its deliveries begin again")
    return deliveries


def _report_pending(id: str) -> None:
    report_once(f"the pending deliveries of the subscription {id} cannot be read; its deliveries begin again")


def _is_of_log(id: str, saved: SavedDelivery, pending_sequences: Iterable[int], head: int) -> bool:
    """Whether a state does not go beyond the log's end. One of another log would skip events up to its position."""
    if (last := _last_position(saved, pending_sequences)) <= head:
        return True
    reason = f"is at position {last}, beyond the end of the log"
    report_once(f"the state of the subscription {id} {reason}; its deliveries begin again")
    return False


def _last_position(saved: SavedDelivery, pending_sequences: Iterable[int]) -> int:
    """The highest position that a state mentions."""
    replay = saved.record.replay or {}
    sequences = (saved.record.reach, replay.get("reach", 0), *pending_sequences)
    positions: tuple[int, ...] = (saved.cursor, replay.get("cursor", 0), replay.get("to", 0))
    return max(*positions, *map(position_of, sequences))


def save_updates(db: Database, process: str, updates: Sequence[StateUpdate]) -> set[str]:
    """Writes the updates of subscriptions that a process holds. Returns their ids."""
    ids = [update.id for update in updates]
    # Locks the lease rows until commit, on databases where others could take a lease meanwhile.
    query = _HELD_SUBSCRIPTIONS.format(db.in_list("subscription")) + db.share_lock
    held_ids = {row[0] for row in db.all(query, (process, db.list_parameter(ids)))}
    held_updates = [update for update in updates if update.id in held_ids]
    if first_ids := [update.id for update in held_updates if update.is_first]:
        db.run(_DELETE_PENDING.format(db.in_list("subscription")), (db.list_parameter(first_ids),))
    for write, table, rows_of in (
        (db.upsert, tables.state, StateUpdate.state_rows),
        (db.upsert, tables.pending, StateUpdate.pending_rows),
        (db.delete, tables.pending, StateUpdate.settled_keys),
        (db.upsert, tables.deadletter, StateUpdate.dead_letter_rows),
        (db.delete, tables.deadletter, StateUpdate.dropped_dead_letter_keys),
        (db.upsert, tables.callback, StateUpdate.callback_rows),
        (db.upsert, tables.attempt, StateUpdate.attempt_rows),
        (db.upsert, tables.hour, StateUpdate.hour_rows),
    ):
        if rows := [row for update in held_updates for row in rows_of(update)]:
            write(table, rows)
    return held_ids


def delete_subscriptions(db: Database, ids: Iterable[str]) -> None:
    """Deletes all state of subscriptions that were deleted (SUB-504)."""
    id_list = list(ids)
    for table in _SUBSCRIPTION_TABLES:
        db.run(f"DELETE FROM {table} WHERE {db.in_list('subscription')}", (db.list_parameter(id_list),))


def delete_expired(db: Database, now: float, retention_seconds: float) -> None:
    """Deletes expired dead letters, attempts and callback secrets, and the state of subscriptions deleted unnoticed.

    retention_seconds: seconds that dead letters are kept.
    """
    db.run("DELETE FROM delivery_deadletter WHERE last < ?", (now - retention_seconds,))
    db.run("DELETE FROM delivery_callback WHERE until < ? OR until > ?", (now, tables.NEVER))
    oldest = now - tables.ATTEMPT_SECONDS
    db.run("DELETE FROM delivery_attempt WHERE time < ? OR time > ?", (oldest, tables.NEVER))
    db.run("DELETE FROM delivery_hour WHERE hour < ?", (int(oldest) // 3600,))
    if deleted_ids := [row[0] for row in db.all(_DELETED_SUBSCRIPTIONS) if isinstance(row[0], str)]:
        delete_subscriptions(db, deleted_ids)


class DeliveryRequest(NamedTuple):
    """A request of another process about a subscription. value: a text, unless the row is damaged."""

    subscription: str
    name: str
    value: Any


def read_requests(db: Database, ids: Collection[str]) -> list[DeliveryRequest]:
    """The requests about subscriptions, which stay until `delete_requests`."""
    if db.one("SELECT 1 FROM delivery_request LIMIT 1") is None:
        return []
    id_condition, id_parameter = db.in_list("subscription"), db.list_parameter(ids)
    rows = db.all(f"SELECT subscription, name, value FROM delivery_request WHERE {id_condition}", (id_parameter,))
    return [DeliveryRequest(*row) for row in rows]


def delete_requests(db: Database, requests: Iterable[DeliveryRequest]) -> None:
    """Deletes requests, unless there is a newer one in place of one."""
    for request in requests:
        db.run("DELETE FROM delivery_request WHERE subscription = ? AND name = ? AND value = ?", request)


def _sequence_of(dead_letter: DeadLetter | int) -> int:
    return dead_letter.sequence if isinstance(dead_letter, DeadLetter) else dead_letter
