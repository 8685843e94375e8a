"""Follows the log of another registry through the Kafka topic on which it is published.

The other registry publishes with `annals publish --documents`. The cursor is a position of the other log, as over HTTP.
Kafka offsets are stored only to resume there. They are used if the topic still holds that very record; otherwise the
topic is read from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition, errors

from annals.domain.compat.legacy_apis import document_hash
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link
from annals.projections.kafka.cluster import CertificateAuthorities, InsecureCredential, KafkaCluster
from annals.projections.kafka.records import record_position as numbered
from annals.projections.outgoing.certificates import TrustStore
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.ingest import BATCH_EVENTS, LogIngester
from annals.projections.replication.log.kafka_ordering import PartitionMarks, RecordMark, RecordOrder
from annals.projections.replication.log.kafka_records import InteractionAssembler, LogTopicRecord
from annals.projections.replication.log.log_lines import BrokenFeed
from annals.projections.replication.remote.remote_client import RemoteError
from annals.projections.subscriptions.contract import Credential
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome

#: Time limits in milliseconds of a poll, and of a request for the end offsets.
POLL_MILLISECONDS: Final = 300
BROKER_MILLISECONDS: Final = 10_000
#: Bytes of early records above which partitions that are ahead are paused.
MAX_WAITING_BYTES: Final = 64 << 20
#: Seconds between two writes of the offsets.
SAVE_OFFSETS_SECONDS: Final = 5.0
_CONSUMER_SETTINGS: Final = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "isolation_level": "read_committed",
}


class KafkaPull:
    """Runs one link of the dialect that follows a Kafka topic."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._brokers, _, self._topic = link.url.rpartition("/")
        self._failure: Exception | None = None

    def run(self) -> None:
        """See `LinkWorker`."""
        try:
            with closing(
                self._kafka_cluster().open_client(KafkaConsumer, self._on_failure, **_CONSUMER_SETTINGS)
            ) as consumer:
                _TopicFollower(self._link, self._context, consumer, self._topic).run(self._check_brokers)
        except errors.KafkaError as error:
            outcome = error_outcome(self._failure or error)
            raise RemoteError(f"{self._link.url} does not answer: {outcome.code} {outcome.message}".strip()) from None
        except InsecureCredential as error:
            raise RemoteError(str(error)) from None

    def _kafka_cluster(self) -> KafkaCluster:
        resolver = self._context.resolver
        ca_file = resolver.ca if isinstance(resolver, TrustStore) else ""
        return KafkaCluster(
            self._brokers,
            _kafka_credential(self._context.credential(self._link)),
            CertificateAuthorities(ca_file),
            resolver,
        )

    def _on_failure(self, error: Exception) -> None:
        self._failure = error

    def _check_brokers(self, consumer: Any) -> None:
        """After a failed connection, checks whether the brokers still answer. Raises: KafkaError."""
        if self._failure is not None:
            consumer.end_offsets(list(consumer.assignment()), timeout_ms=BROKER_MILLISECONDS)
            self._failure = None


def _kafka_credential(credential: Mapping[str, Any]) -> Credential | None:
    if not credential:
        return None
    if credential["type"] == "bearer":
        return Credential("ACCESSTOKEN", token=credential.get("token", ""))
    return Credential("PLAIN", identifier=credential["username"], secret=credential.get("password", ""))


class _TopicFollower:
    """Follows one topic with one consumer."""

    def __init__(self, link: Link, context: LinkWorkerContext, consumer: Any, topic: str) -> None:
        self._link = link
        self._context = context
        self._consumer = consumer
        self._topic = topic
        self._ingester = LogIngester(link, context)
        self._order: RecordOrder[LogTopicRecord] = RecordOrder(self._ingester.cursor)
        self._assembler = InteractionAssembler()
        self._partition_marks = PartitionMarks(context.states.read(link.id).status.get("offsets", {}))
        self._saved_offsets = self._partition_marks.to_json()
        self._expected_marks: dict[int, RecordMark] = {}
        self._saved_at = time.monotonic()

    def run(self, check: Any) -> None:
        """Follows until stopped, or until the set of partitions changes. check: called after each empty poll."""
        partitions = self._seek()
        try:
            while not self._context.stopping.is_set():
                records_by_partition = self._consumer.poll(timeout_ms=POLL_MILLISECONDS, max_records=BATCH_EVENTS)
                for topic_partition, records in records_by_partition.items():
                    self._process_records(topic_partition.partition, records)
                self._ingester.ingest(self._check_documents(self._assembler.assemble(self._order.take_next())))
                self._partition_marks.advance(self._ingester.cursor)
                self._pause_ahead(partitions)
                if time.monotonic() > self._saved_at + SAVE_OFFSETS_SECONDS:
                    self._save_marks()
                if not records_by_partition:
                    check(self._consumer)
                    if self._consumer.partitions_for_topic(self._topic) != partitions:
                        return
        finally:
            self._save_marks()

    def _seek(self) -> set[int]:
        """Seeks to the stored offsets and returns the partitions. Raises: RemoteError, BrokenFeed, KafkaError."""
        partitions: set[int] = self._consumer.partitions_for_topic(self._topic)
        if not partitions:
            raise RemoteError(f"there is no topic {self._topic}")
        topic_partitions = {partition: TopicPartition(self._topic, partition) for partition in partitions}
        self._consumer.assign(list(topic_partitions.values()))
        end_offsets = self._consumer.end_offsets(list(topic_partitions.values()), timeout_ms=BROKER_MILLISECONDS)
        for partition, topic_partition in topic_partitions.items():
            mark = self._partition_marks.get(partition)
            if mark is None:
                self._consumer.seek_to_beginning(topic_partition)
            elif mark.offset < end_offsets[topic_partition]:
                self._consumer.seek(topic_partition, mark.offset)
                self._expected_marks[partition] = mark
            else:
                raise self._reset_offsets(f"the topic {self._topic} is shorter than when it was read last")
        return partitions

    def _process_records(self, partition: int, records: Iterable[Any]) -> None:
        for record in records:
            record_position = numbered(record.headers)
            if record_position is None:
                raise BrokenFeed(f"the topic {self._topic} has a record that is not from a registry")
            mark = RecordMark(record.offset, record_position.number, record.timestamp)
            if self._expected_marks.pop(partition, mark) != mark:
                raise self._reset_offsets(f"the topic {self._topic} is not the one that was read before")
            self._partition_marks.add(partition, mark)
            headers = dict(record.headers)
            size = len(record.value) + sum(map(len, headers.values()))
            self._order.add(partition, record_position.number, LogTopicRecord(record.value, headers), size)

    def _check_documents(self, interactions: Iterator[ForeignInteraction]) -> Iterator[ForeignInteraction]:
        """The interactions, after checking that all their documents are available. Raises: BrokenFeed."""
        for interaction in interactions:
            for event in interaction.events:
                digest = document_hash(event.private)
                if digest and digest not in interaction.documents and self._link.scope.has(event.xid):
                    self._check_known(digest, event.xid)
            yield interaction

    def _check_known(self, digest: str, xid: str) -> None:
        # Earlier documents, even if not recorded yet, were checked themselves. A Resource repeats its Version's
        # document.
        if xid.count("/") == 6 and self._context.readers.quick_view().log.document(digest) is None:
            raise BrokenFeed(
                f"the topic {self._topic} does not have the document of {xid}: publish the log with --documents"
            )

    def _pause_ahead(self, partitions: set[int]) -> None:
        """Pauses partitions that are far ahead. Raises: BrokenFeed if no partition can hold the next record."""
        partitions_ahead = self._order.partitions_ahead()
        if partitions_ahead == partitions:
            raise self._reset_offsets(
                f"the topic {self._topic} has no record of position {self._order.last_number + 1}"
            )
        if self._order.waiting_bytes > MAX_WAITING_BYTES:
            self._consumer.pause(*(TopicPartition(self._topic, partition) for partition in partitions_ahead))
        elif paused_partitions := self._consumer.paused():
            self._consumer.resume(*paused_partitions)

    def _save_marks(self) -> None:
        self._saved_at, offsets = time.monotonic(), self._partition_marks.to_json()
        if offsets != self._saved_offsets:
            self._context.states.update(self._link.id, offsets=offsets or None)
            self._saved_offsets = offsets

    def _reset_offsets(self, reason: str) -> BrokenFeed:
        """An error after forgetting the offsets, so that the topic is read from its beginning next time."""
        self._partition_marks = PartitionMarks({})
        return BrokenFeed(reason)
