"""The eventsourcing library's recorder over SQLAlchemy, for SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    ProgrammingError,
    StoredEvent,
    Subscription,
)
from sqlalchemy import Connection, Engine, Select, func, select

from annals.commands.store import sql, tables
from annals.commands.store.driver_errors import driver_errors
from annals.commands.store.hashes import LogRow
from annals.commands.store.state_compression import compress_state, decompress_state

_LOG: Final = tables.log.c


class LogRecorder(ApplicationRecorder):
    """Stored events in `log`. Positions count from 1 without gaps, so reading by position never skips a late commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Inserts events; returns their positions.

        connection: of a transaction that holds the write lock. after: the log's last position.
        Raises: IntegrityError when a revision of a stream exists already; ProgrammingError without a connection. An
        event without an interaction would break the proof of the log, so callers use `Store.writing`.
        """
        connection: Connection | None = kwargs.get("connection")
        if connection is None:
            raise ProgrammingError("events are recorded inside Store.writing()")
        rows = [_row(position, stored) for position, stored in enumerate(stored_events, kwargs["after"] + 1)]
        try:
            sql.insert(connection, tables.log, rows)
        except driver_errors("IntegrityError") as error:
            raise IntegrityError(str(error)) from error
        return range(kwargs["after"] + 1, kwargs["after"] + 1 + len(rows))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Events of one stream, by revision."""
        query = select(_LOG.stream, _LOG.revision, _LOG.topic, _LOG.state).where(_LOG.stream == str(originator_id))
        if gt is not None:
            query = query.where(_LOG.revision > gt)
        if lte is not None:
            query = query.where(_LOG.revision <= lte)
        query = query.order_by(_LOG.revision.desc() if desc else _LOG.revision).limit(limit)
        rows = self._fetch_all(query)
        return [
            StoredEvent(stream, revision, topic, decompress_state(state)) for stream, revision, topic, state in rows
        ]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events of the whole log, by position."""
        query = select(_LOG.stream, _LOG.revision, _LOG.topic, _LOG.state, _LOG.position)
        if start is not None:
            query = query.where(_LOG.position >= start if inclusive_of_start else _LOG.position > start)
        if stop is not None:
            query = query.where(_LOG.position <= stop)
        if topics:
            query = query.where(_LOG.topic.in_(topics))
        rows = self._fetch_all(query.order_by(_LOG.position).limit(limit))
        return [
            Notification(stream, revision, topic, decompress_state(state), id=position)
            for stream, revision, topic, state, position in rows
        ]

    def max_notification_id(self) -> int | None:
        """The log's last position; None when it is empty."""
        with self._engine.connect() as connection:
            last_position: int | None = connection.scalar(select(func.max(_LOG.position)))
            return last_position

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[ApplicationRecorder]:
        """Not supported: subscriptions are optional in the library, and readers of this log continue by position."""
        raise NotImplementedError("read on with select_notifications")

    def _fetch_all(self, query: Select[Any]) -> Sequence[Any]:
        with self._engine.connect() as connection:
            return connection.execute(query).all()


def _row(position: int, stored: StoredEvent) -> LogRow:
    """The row of an event as the table has it, with its state compressed."""
    stream, revision = str(stored.originator_id), stored.originator_version
    return LogRow(position, stream, revision, stored.topic, compress_state(stored.state))
