"""The changes of subscriptions, read from the log.

At the start, all subscriptions are read through `head`; from then on, each event: created, updated, paused, deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.damage import report_once
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper, UnreadableEvent
from annals.domain.registry.evolve import evolve
from annals.domain.subscriptions.subscription import TYPE, Subscription
from annals.projections.database.drivers import Database
from annals.projections.log.reader import Log

_COLUMNS: Final = "l.position, l.stream, l.revision, l.topic, l.state"
_SELECT_LIVE: Final = f"SELECT {_COLUMNS} FROM head h JOIN log l ON l.position = h.position WHERE h.type = ? AND h.live"
#: An expression instead of the column, so that the database scans the range of positions.
_SELECT_SINCE: Final = (
    f"SELECT {_COLUMNS} FROM log l WHERE l.position > ? AND l.position <= ?"
    " AND l.stream || '' >= '/subscriptions/' AND l.stream || '' < '/subscriptions0' ORDER BY l.position"
)
_STREAM_PREFIX: Final = "/subscriptions/"
_MAPPER: Final = EventMapper()
#: Events of one stream that one query reads.
_BATCH_SIZE: Final = 1_000


class SubscriptionChange(NamedTuple):
    """One event of a subscription's stream. subscription: its state after the event, None once deleted."""

    id: str
    revision: int
    position: int
    subscription: Subscription | None


def read_living(db: Database) -> list[SubscriptionChange]:
    """The last event of each live subscription."""
    return list(_decode_changes(db.all(_SELECT_LIVE, (TYPE,))))


def read_changes(db: Database, after: int, until: int) -> list[SubscriptionChange]:
    """The events of all subscriptions after one position, up to and including another, in order."""
    return list(_decode_changes(db.all(_SELECT_SINCE, (after, until))))


def read_history(db: Database, id: str, revision: int, until: int) -> list[SubscriptionChange]:
    """The events of one subscription after a revision, up to and including a position, in order."""
    changes: list[SubscriptionChange] = []
    while rows := Log(db).revisions(_STREAM_PREFIX + id.lower(), revision, until, _BATCH_SIZE):
        changes += _decode_changes(rows)
        revision = rows[-1].revision
    return changes


def _decode_changes(rows: Sequence[Any]) -> Iterator[SubscriptionChange]:
    for position, stream, revision, topic, state in rows:
        try:
            event = _MAPPER.event_of_row(LogRow(position, stream, revision, topic, decompress_state(state)))
            entity = evolve(event, position)
            subscription = Subscription.from_entity(entity, position) if entity is not None else None
        except (UnreadableEvent, KeyError, TypeError) as error:
            # The same thread reads other subscriptions, so one bad event must not stop it.
            report_once(f"the subscription at position {position} cannot be read and stays as it was: {error}")
            continue
        yield SubscriptionChange(event.xid.removeprefix(_STREAM_PREFIX), revision, position, subscription)
