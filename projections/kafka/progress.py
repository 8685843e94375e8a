"""The next records to publish from the log, and the count of acknowledged ones."""

from __future__ import annotations

from typing import NamedTuple

from annals.commands.store.engine import WRITING
from annals.commands.store.hashes import Interaction
from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.events import feed
from annals.projections.kafka.records import TOPICS, PublishedCounts, PublishedRecord, RecordBuilder
from annals.projections.log import positions
from annals.projections.log.reader import Log

#: The maximum number of events in one window. It is acknowledged as a whole before the next one is sent.
WINDOW_EVENTS = 500


class Window(NamedTuple):
    """Records that are sent together. counts: the counts after them. log_end: the last position of the log."""

    records: list[PublishedRecord]
    counts: PublishedCounts
    log_end: int


class PublishingProgress:
    """The progress of one pair of topics, in the table of all projections' positions: stored before more is sent.

    The registry's write lock is held while the counts are stored, but never while waiting for a broker.
    """

    def __init__(self, store: Store, record_builder: RecordBuilder, prefix: str, *, documents: bool = False) -> None:
        """prefix: of the topics' names, and of the names of the stored counts. documents: publish them too."""
        self._documents = documents
        self._store = store
        self._record_builder = record_builder
        self.prefix = prefix
        self._position_names = [f"kafka:{prefix}.{topic}" for topic in TOPICS]
        self._write_engine = store.engine.execution_options(**{WRITING: True})
        with self._write_engine.begin() as connection:
            positions.POSITIONS.create(connection, checkfirst=True)

    def published_counts(self) -> PublishedCounts:
        """The acknowledged counts."""
        with self._store.engine.begin() as connection:
            db = drivers.database_of(connection)
            return PublishedCounts(*(positions.read_position(db, name) for name in self._position_names))

    def save(self, counts: PublishedCounts) -> None:
        """Stores the acknowledged counts."""
        with self._write_engine.begin() as connection:
            db = drivers.database_of(connection)
            for name, number in zip(self._position_names, counts, strict=True):
                positions.save_position(db, name, number)

    def next_window(self, after: PublishedCounts, limit: int = WINDOW_EVENTS) -> Window:
        """The next window after some counts: up to `limit` stored events, none at the end of the log.

        A large interaction is split into parts. Raises: UnknownTopic for an event that a newer program wrote.
        """
        records: list[PublishedRecord] = []
        with self._store.engine.begin() as connection:
            log = Log(drivers.database_of(connection))
            end = feed.page_end(lambda: log, after.log, limit)
            documents = log.document if self._documents else None
            for interaction, rows in feed.interactions(lambda: log, after.log, end):
                interaction_records, after = self._record_builder.build(interaction, rows, after, documents)
                records += interaction_records
            return Window(records, after, log.head().last)

    def log_end(self) -> int:
        """The last position of the log."""
        with self._store.engine.begin() as connection:
            return Log(drivers.database_of(connection)).head().last

    def interaction(self, position: int) -> Interaction | None:
        """The interaction at a position; None after the end of the log."""
        with self._store.engine.begin() as connection:
            interactions = Log(drivers.database_of(connection)).interactions(position - 1, 1)
            return interactions[0] if interactions else None
