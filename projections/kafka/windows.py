"""The next records to publish, read from the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from annals.commands.store.hashes import Interaction
from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.events import feed
from annals.projections.kafka.records import PublishedRecord, TopicContent, WindowPart, position_headers
from annals.projections.kafka.topic_position import TopicPosition, TopicPositions
from annals.projections.log.reader import Log

#: The maximum number of stored events in one window, and the bytes of one topic's records after which it ends.
WINDOW_EVENTS = 2000
WINDOW_BYTES = 8 << 20


class Window(NamedTuple):
    """Records that are published in one transaction. positions: after them. log_end: the last position of the log."""

    records: list[PublishedRecord]
    positions: TopicPositions
    log_end: int


class WindowReader:
    """Reads the log in windows. It only reads the store, so it can run next to servers, and on a replica of it."""

    def __init__(self, store: Store, topics: Sequence[TopicContent]) -> None:
        self._store = store
        self.topics = tuple(topics)

    def next_window(self, positions: TopicPositions, *, end: int | None = None) -> Window:
        """The next window after some positions: up to WINDOW_EVENTS stored events, none at the end of the log.

        Topics that are behind others catch up first. A large interaction is split into parts. positions: of each topic.
        end: the last position that may be in the window.
        Raises: UnknownTopic for an event that a newer program wrote.
        """
        start = min(position.position for position in positions.values())
        behind = [topic for topic in self.topics if positions[topic.name].position == start]
        further = [position.position for position in positions.values() if position.position > start]
        with self._store.engine.begin() as connection:
            log = Log(drivers.database_of(connection))
            log_end = log.head().last
            window_end = min(
                [feed.page_end(lambda: log, start, WINDOW_EVENTS), *further, *([] if end is None else [end])]
            )
            parts = list(_read_parts(log, start, window_end))
            records, last = _build_records(behind, positions, parts, log)
        return Window(records, _positions_after(behind, positions, parts, records, last), log_end)

    def log_end(self) -> int:
        """The last position of the log."""
        with self._store.engine.begin() as connection:
            return Log(drivers.database_of(connection)).head().last

    def interaction(self, position: int) -> Interaction | None:
        """The interaction at a position; None after the end of the log."""
        with self._store.engine.begin() as connection:
            interactions = Log(drivers.database_of(connection)).interactions(position - 1, 1)
            return interactions[0] if interactions else None


def _read_parts(log: Log, start: int, end: int) -> Iterator[WindowPart]:
    for interaction, rows in feed.interactions(lambda: log, start, end):
        yield WindowPart(interaction, list(rows))


def _build_records(
    topics: Sequence[TopicContent], positions: TopicPositions, parts: Sequence[WindowPart], log: Log
) -> tuple[list[PublishedRecord], int]:
    """The records of some parts of the log, and the last position that they cover.

    That is before the end of the parts if the records of a topic would be larger than a window.
    """
    records: list[PublishedRecord] = []
    last = parts[-1].rows[-1].position if parts else 0
    for topic in topics:
        size, previous = 0, 0
        for record in numbered_records(topic, positions[topic.name], parts, log):
            if record.position > last:
                break
            if size > WINDOW_BYTES and record.position > previous:
                last = record.position - 1
                break
            size, previous = size + record.size, record.position
            records.append(record)
    return [record for record in records if record.position <= last], last


def numbered_records(
    topic: TopicContent, position: TopicPosition, parts: Sequence[WindowPart], log: Log
) -> Iterator[PublishedRecord]:
    """The records of a topic after a position. parts: of the log, which follow it."""
    for number, content in enumerate(topic.records(parts, log), position.number + 1):
        yield PublishedRecord(
            topic.name,
            position.partition_of(content.key),
            content.position,
            content.key,
            content.value,
            [*content.headers, *position_headers(content, number)],
        )


def _positions_after(
    topics: Sequence[TopicContent],
    positions: TopicPositions,
    parts: Sequence[WindowPart],
    records: Sequence[PublishedRecord],
    last: int,
) -> TopicPositions:
    if not parts:
        return positions
    interaction = next(part.interaction for part in parts if part.rows[-1].position >= last)
    counts = dict.fromkeys((topic.name for topic in topics), 0)
    for record in records:
        counts[record.topic] += 1
    return dict(positions) | {
        name: positions[name]._replace(
            number=positions[name].number + count, position=last, xregcorrelationid=interaction.xregcorrelationid
        )
        for name, count in counts.items()
    }
