"""The eventsourcing library's recorder over SQLAlchemy, for SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
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

from annals.commands.store.archive.state_reader import state_reader
from annals.commands.store.compression.state_compression import compress_state
from annals.commands.store.database import sql, tables
from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.hashes import LogRow

E = TypeVar("E", bound=StoredEvent)

_LOG: Final = tables.log.c
_COLUMNS: Final = (_LOG.position, _LOG.stream, _LOG.revision, _LOG.topic, _LOG.state)


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
        query = select(*_COLUMNS).where(_LOG.stream == str(originator_id))
        if gt is not None:
            query = query.where(_LOG.revision > gt)
        if lte is not None:
            query = query.where(_LOG.revision <= lte)
        query = query.order_by(_LOG.revision.desc() if desc else _LOG.revision).limit(limit)
        return self._map_rows(
            query,
            lambda position, stream, revision, topic, state: StoredEvent(stream, revision, topic, state),
        )

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
        query = select(*_COLUMNS)
        if start is not None:
            query = query.where(_LOG.position >= start if inclusive_of_start else _LOG.position > start)
        if stop is not None:
            query = query.where(_LOG.position <= stop)
        if topics:
            query = query.where(_LOG.topic.in_(topics))
        return self._map_rows(
            query.order_by(_LOG.position).limit(limit),
            lambda position, stream, revision, topic, state: Notification(stream, revision, topic, state, id=position),
        )

    def max_notification_id(self) -> int | None:
        """The log's last position; None when it is empty."""
        with self._engine.connect() as connection:
            last_position: int | None = connection.scalar(select(func.max(_LOG.position)))
            return last_position

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[ApplicationRecorder]:
        """Not supported: subscriptions are optional in the library, and readers of this log continue by position."""
        raise NotImplementedError("read on with select_notifications")

    def _map_rows(self, query: Select[Any], build: Callable[..., E]) -> list[E]:
        """The rows of the columns above as events. Raises: ArchiveUnavailable."""
        with self._engine.connect() as connection:
            read_state = state_reader(connection)
            rows = connection.execute(query).all()
            return [
                build(position, stream, revision, topic, read_state(position, state))
                for position, stream, revision, topic, state in rows
            ]


def _row(position: int, stored: StoredEvent) -> LogRow:
    """The row of an event as the table has it, with its state compressed."""
    stream, revision = str(stored.originator_id), stored.originator_version
    return LogRow(position, stream, revision, stored.topic, compress_state(stored.state))
