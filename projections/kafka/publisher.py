"""The publisher: sends the log to its topics, one window after another, and continues after any interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from threading import Event
from typing import Final

from kafka import errors

from annals.projections.kafka.cluster import COMPACTION_SETTINGS, KafkaCluster
from annals.projections.kafka.log_agreement import TopicsDiverged, starting_positions
from annals.projections.kafka.producer import LastOffsets, Producer, PublishingStopped, RecordRefused
from annals.projections.kafka.records import PublishedRecord
from annals.projections.kafka.topic_position import (
    POSITIONS,
    POSITIONS_KEY,
    TopicPosition,
    TopicPositions,
    decode_positions,
    encode_positions,
)
from annals.projections.kafka.windows import WindowReader
from annals.projections.subscriptions.contract import DeliveryResult
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome

#: Seconds between polls of an unchanged log, and before reconnecting to brokers.
POLL_SECONDS: Final = 0.2
RETRY_SECONDS: Final = 2.0
#: A later producer has shut this one out: one of another publisher, or the brokers, after a transaction took too long.
_FENCED_ERRORS: Final = (errors.ProducerFencedError, errors.InvalidProducerEpochError)


class AnotherPublisher(Exception):
    """Another publisher of the same prefix has continued in the place of this one."""


class Publisher:
    """Publishes some topics of one prefix, each window exactly once.

    A window and the positions after it are one transaction. A publisher continues from the positions that the last
    transaction left, wherever its predecessor ended.
    """

    def __init__(
        self,
        reader: WindowReader,
        cluster: KafkaCluster,
        prefix: str,
        *,
        partitions: int = -1,
        report_progress: Callable[[int, int], None] = lambda done, total: None,
        report_line: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Sets up a publisher, without connecting.

        partitions: of topics that do not exist yet; -1 for the brokers' default. report_progress: receives the
        published position and the last one. report_line: receives a line about each interruption.
        """
        self._reader = reader
        self._cluster = cluster
        self._prefix = prefix
        self._partitions = partitions
        self._report_progress = report_progress
        self._report_line = report_line
        #: The positions that this publisher left in the topics; two while it is unknown whether a commit succeeded.
        self._own_positions: tuple[TopicPositions, ...] = ()
        self._stored: TopicPositions = {}

    def publish_once(self, stop: Event) -> TopicPositions:
        """Publishes the rest of the log, unless stopped; returns the positions reached.

        Raises: TopicsDiverged; AnotherPublisher; RecordRefused; KafkaError.
        """
        return self._publish(stop, follows=False)

    def run(self, stop: Event) -> TopicPositions:
        """Follows the log until stopped; waits for unreachable brokers. Returns the positions reached.

        Raises: TopicsDiverged; AnotherPublisher; RecordRefused for a record that brokers will never accept; KafkaError
        when a credential is refused.
        """
        return self._publish(stop, follows=True)

    def _publish(self, stop: Event, *, follows: bool) -> TopicPositions:
        is_fenced, refused = False, None
        while True:
            try:
                with self._open_producer(stop, is_fenced) as producer:
                    end = None if refused is None else refused.record.position - 1
                    self._catch_up(producer, end)
                    while refused is None and follows and not stop.wait(POLL_SECONDS):
                        self._catch_up(producer)
            except PublishingStopped:
                pass
            except RecordRefused as error:  # its transaction has failed as a whole, so the part before it is published
                refused = error
                continue
            except errors.KafkaError as error:
                is_fenced = isinstance(error, _FENCED_ERRORS)
                if is_fenced:
                    continue
                outcome = error_outcome(error)
                if not follows or outcome.result is not DeliveryResult.RETRY:
                    raise
                reason = f"{outcome.code} {outcome.message}"
                self._report_line(f"Kafka at {self._cluster.servers} cannot be used: {reason}; trying again")
                if not stop.wait(RETRY_SECONDS):
                    continue
            if refused is not None:
                raise refused
            return self._topic_positions()

    @contextmanager
    def _open_producer(self, stop: Event, is_fenced: bool) -> Iterator[Producer]:
        """A producer, after the positions to continue from are known; closes it when the block ends."""
        names = {topic.name: f"{self._prefix}.{topic.name}" for topic in self._reader.topics}
        self._cluster.create_topics([*names.values()], self._partitions)
        positions_topic = f"{self._prefix}.{POSITIONS}"
        self._cluster.create_topics([positions_topic], 1, COMPACTION_SETTINGS)
        # The producer first: it ends the transactions of an earlier one, which could still move the positions.
        with closing(Producer(self._cluster, self._prefix, stop.is_set)) as producer:
            self._stored = self._read_positions(positions_topic)
            if is_fenced and self._stored not in self._own_positions:
                raise AnotherPublisher(f"another publisher continues {self._prefix}")
            self._own_positions = (self._stored,)
            end_offsets = self._cluster.end_offsets([*names.values()])
            self._continue_from(
                producer,
                starting_positions(
                    self._reader,
                    self._prefix,
                    self._stored,
                    {topic: end_offsets[name] for topic, name in names.items()},
                ),
            )
            self._report_unused_partitions({topic: len(end_offsets[name]) for topic, name in names.items()})
            yield producer

    def _read_positions(self, positions_topic: str) -> dict[str, TopicPosition]:
        value = self._cluster.last_value(positions_topic)
        try:
            return {} if value is None else decode_positions(value)
        except ValueError:
            raise TopicsDiverged(f"the topic {positions_topic} is not one of a publisher") from None

    def _continue_from(self, producer: Producer, positions: TopicPositions) -> None:
        """Stores the beginning of new topics at once, so that a topic that lost its records never looks like one."""
        if any(self._stored.get(topic) != position for topic, position in positions.items()):
            self._commit(producer, [], {**self._stored, **positions})

    def _report_unused_partitions(self, partition_counts: Mapping[str, int]) -> None:
        for topic, position in self._topic_positions().items():
            used, count = len(position.last_offsets), partition_counts[topic]
            if used < count:
                self._report_line(
                    f"the topic {self._prefix}.{topic} has {count} partitions; the first {used} are in use, as before,"
                    " so that records of an entity stay in order"
                )

    def _catch_up(self, producer: Producer, end: int | None = None) -> None:
        """Publishes up to the end of the log, or up to a position."""
        while (
            window := self._reader.next_window(positions := self._topic_positions(), end=end)
        ).positions != positions:
            self._commit(producer, window.records, {**self._stored, **window.positions})
            self._report_progress(min(position.position for position in window.positions.values()), window.log_end)

    def _commit(self, producer: Producer, records: Sequence[PublishedRecord], positions: TopicPositions) -> None:
        """Publishes records, and the positions after them, in one transaction."""
        producer.begin()
        positions = _with_last_offsets(positions, producer.send(records))
        producer.send([PublishedRecord(POSITIONS, 0, 0, POSITIONS_KEY, encode_positions(positions), [])])
        self._own_positions = (self._stored, positions)
        producer.commit()
        self._stored, self._own_positions = positions, (positions,)

    def _topic_positions(self) -> dict[str, TopicPosition]:
        """The positions of the topics of this publisher."""
        names = {topic.name for topic in self._reader.topics}
        return {topic: position for topic, position in self._stored.items() if topic in names}


def _with_last_offsets(positions: TopicPositions, offsets: LastOffsets) -> dict[str, TopicPosition]:
    """The positions after records with these offsets."""
    return {
        topic: position._replace(
            last_offsets=tuple(
                offsets.get((topic, partition), last_offset)
                for partition, last_offset in enumerate(position.last_offsets)
            )
        )
        for topic, position in positions.items()
    }
