"""The publisher: sends the log to its topics, one window after another, and continues after any interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from threading import Event
from typing import Final

from kafka import errors

from annals.projections.kafka.cluster import KafkaCluster
from annals.projections.kafka.log_agreement import find_start
from annals.projections.kafka.producer import Producer, PublishingStopped, RecordFailed
from annals.projections.kafka.progress import PublishingProgress
from annals.projections.kafka.records import TOPICS, PublishedCounts
from annals.projections.subscriptions.contract import DeliveryResult
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome

#: Seconds between polls of an unchanged log, and before reconnecting to brokers.
POLL_SECONDS: Final = 0.2
RETRY_SECONDS: Final = 2.0


class Publisher:
    """Publishes one pair of topics, `<prefix>.log` and `<prefix>.events`.

    Two publishers at the same time only cause duplicate records: each writes the same ones, in the same order.
    """

    def __init__(
        self,
        progress: PublishingProgress,
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
        self._progress = progress
        self._cluster = cluster
        self._prefix = prefix
        self._partitions = partitions
        self._report_progress = report_progress
        self._report_line = report_line

    def publish_once(self, stop: Event) -> PublishedCounts:
        """Publishes the rest of the log, unless stopped; returns the counts reached.

        Raises: TopicsDiverged; RecordFailed; KafkaError, or TimeoutError when nothing is acknowledged for a while.
        """
        with self._open_producer(stop) as (producer, counts):
            return self._catch_up(producer, counts, waits_forever=False)

    def run(self, stop: Event) -> None:
        """Follows the log until stopped; waits for unreachable brokers.

        Raises: TopicsDiverged; RecordFailed for a record that brokers will never accept; KafkaError when a credential
        is refused.
        """
        while not stop.is_set():
            try:
                with self._open_producer(stop) as (producer, counts):
                    while not stop.is_set():
                        counts = self._catch_up(producer, counts, waits_forever=True)
                        stop.wait(POLL_SECONDS)
            except (errors.KafkaError, RecordFailed) as error:
                if not _is_transient(error):
                    raise
                self._report_line(f"{error or type(error).__name__}; trying again")
                stop.wait(RETRY_SECONDS)

    @contextmanager
    def _open_producer(self, stop: Event) -> Iterator[tuple[Producer, PublishedCounts]]:
        """A producer, and the counts to continue from; closes the producer when the block ends."""
        topic_names = {topic: f"{self._prefix}.{topic}" for topic in TOPICS}
        self._cluster.create_topics([*topic_names.values()], self._partitions)
        counts = find_start(
            self._progress, lambda: {topic: self._cluster.topic_contents(name) for topic, name in topic_names.items()}
        )
        with closing(Producer(self._cluster, self._prefix, stop.is_set)) as producer:
            yield producer, counts

    def _catch_up(self, producer: Producer, counts: PublishedCounts, waits_forever: bool) -> PublishedCounts:
        """Publishes up to the end of the log; returns the counts, which are stored after each acknowledged window."""
        while (window := self._progress.next_window(counts)).counts != counts:
            try:
                for record in window.records:
                    self._wait_for_brokers(partial(producer.send, record), waits_forever)
                self._wait_for_brokers(producer.flush, waits_forever)
            except PublishingStopped:
                return counts
            counts = window.counts
            self._progress.save(counts)
            self._report_progress(counts.log, window.log_end)
        return counts

    def _wait_for_brokers(self, operation: Callable[[], None], waits_forever: bool) -> None:
        """Runs an operation that waits for brokers; if `waits_forever`, reports a timeout and continues to wait."""
        while True:
            try:
                return operation()
            except TimeoutError:
                if not waits_forever:
                    raise
                self._report_line("the brokers do not acknowledge records; waiting for them")


def _is_transient(error: Exception) -> bool:
    """Whether a later attempt can succeed."""
    outcome = error_outcome(error.error if isinstance(error, RecordFailed) else error)
    return outcome.result is DeliveryResult.RETRY
