"""Follows the log of another registry through the Kafka topic on which it is published.

The other registry publishes with `annals publish --documents`. The cursor is a position of the other log, as over HTTP.
Kafka offsets are stored only to resume there. They are used if the topic still holds that very record; otherwise the
topic is read from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from annals.projections.replication.remote.stalled_responses import STALL_SECONDS
from annals.projections.subscriptions.contract import Credential
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome

#: Time limits in milliseconds of a poll, and of a request for the end offsets.
POLL_MILLISECONDS: Final = 300
BROKER_MILLISECONDS: Final = 10_000
#: Bytes of early records above which partitions that are ahead are paused.
MAX_WAITING_BYTES: Final = 64 << 20
#: Seconds between two writes of the status.
STATUS_SECONDS: Final = 5.0
_CONSUMER_SETTINGS: Final = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "isolation_level": "read_committed",
}
EndOffsets = dict[TopicPartition, int]


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
                _TopicFollower(self._link, self._context, consumer, self._topic).run(self._end_offsets)
        except errors.KafkaError as error:
            outcome = error_outcome(self._failure or error, *self._context.reveal_secrets(self._link).values())
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

    def _end_offsets(self, consumer: Any) -> EndOffsets:
        """Where the partitions of a consumer end. Raises: KafkaError if the brokers do not answer."""
        end_offsets: EndOffsets = consumer.end_offsets(list(consumer.assignment()), timeout_ms=BROKER_MILLISECONDS)
        self._failure = None
        return end_offsets


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
        self._assembler = InteractionAssembler(context.max_interaction_bytes)
        self._partition_marks = PartitionMarks(context.states.read(link.id).status.get("offsets", {}))
        self._expected_marks: dict[int, RecordMark] = {}
        self._foreign_record: BrokenFeed | None = None
        self._recorded_at = self._progress_at = time.monotonic()

    def run(self, read_end_offsets: Callable[[Any], EndOffsets]) -> None:
        """Follows until stopped, or until the set of partitions changes.

        read_end_offsets: returns the ends of a consumer's partitions.
        Raises: RemoteError, BrokenFeed, Diverged, KafkaError.
        """
        try:
            partitions = self._seek(read_end_offsets)
            while not self._context.stopping.is_set():
                records_by_partition = self._consumer.poll(timeout_ms=POLL_MILLISECONDS, max_records=BATCH_EVENTS)
                self._import_records({each.partition: records for each, records in records_by_partition.items()})
                self._pause_ahead(partitions)
                if not records_by_partition:
                    if self._foreign_record is not None:
                        raise self._foreign_record
                    if self._consumer.partitions_for_topic(self._topic) != partitions:
                        return
                if time.monotonic() > self._recorded_at + STATUS_SECONDS:
                    self._record_contact(read_end_offsets(self._consumer))
        finally:
            self._save_status()

    def _seek(self, read_end_offsets: Callable[[Any], EndOffsets]) -> set[int]:
        """Seeks to the stored offsets and returns the partitions. Raises: RemoteError, BrokenFeed, KafkaError."""
        partitions: set[int] = self._consumer.partitions_for_topic(self._topic)
        if not partitions:
            raise RemoteError(f"there is no topic {self._topic}")
        topic_partitions = {partition: TopicPartition(self._topic, partition) for partition in partitions}
        self._consumer.assign(list(topic_partitions.values()))
        end_offsets = read_end_offsets(self._consumer)
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

    def _import_records(self, records_by_partition: Mapping[int, Iterable[Any]]) -> None:
        """Imports what is complete with some more records. Raises: BrokenFeed, Diverged."""
        last_number = self._order.last_number
        for partition, records in records_by_partition.items():
            self._add_records(partition, records)
        self._ingester.ingest(self._check_documents(self._assembler.assemble(self._order.take_next())))
        self._partition_marks.advance(self._ingester.cursor)
        if (  # after lost offsets, records that were imported before take their time
            self._is_complete()
            or self._order.last_number > last_number
            or records_by_partition.keys() - self._order.partitions_ahead()
        ):
            self._progress_at = time.monotonic()

    def _add_records(self, partition: int, records: Iterable[Any]) -> None:
        for record in records:
            headers = dict(record.headers)
            is_empty = record.value is None or None in headers.values()
            if is_empty or (record_position := numbered(record.headers)) is None:
                # Raised later, so that records of other partitions are imported. The numbers show what it replaces.
                place = f"offset {record.offset} of partition {partition}"
                self._foreign_record = self._foreign_record or BrokenFeed(
                    f"the topic {self._topic} has a record that is not from a registry, at {place}"
                )
                continue
            mark = RecordMark(record.offset, record_position.number, record.timestamp)
            if self._expected_marks.pop(partition, mark) != mark:
                raise self._reset_offsets(f"the topic {self._topic} is not the one that was read before")
            self._partition_marks.add(partition, mark)
            size = len(record.value) + sum(map(len, headers.values()))
            self._order.add(partition, record_position.number, LogTopicRecord(record.value, headers), size)

    def _is_complete(self) -> bool:
        """Whether nothing that arrived waits for another record."""
        return not (self._order.partitions_ahead() or self._assembler.has_partial)

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
        """Pauses partitions that are far ahead.

        Raises: BrokenFeed if the next record is missing: no partition can hold it, or those that can hold it have given
        nothing for a while.
        """
        partitions_ahead = self._order.partitions_ahead()
        is_impossible = partitions_ahead == partitions
        if is_impossible or time.monotonic() > self._progress_at + STALL_SECONDS:
            missing = f"the topic {self._topic} has no record of position {self._order.last_number + 1}"
            # Offsets advance only with what is imported, so a record that is late comes after them.
            raise self._foreign_record or (self._reset_offsets(missing) if is_impossible else BrokenFeed(missing))
        if self._order.waiting_bytes > MAX_WAITING_BYTES:
            self._consumer.pause(*(TopicPartition(self._topic, partition) for partition in partitions_ahead))
        elif paused_partitions := self._consumer.paused():
            self._consumer.resume(*paused_partitions)

    def _record_contact(self, end_offsets: EndOffsets) -> None:
        """Records that the brokers answer, and clears an earlier error once everything up to these ends is imported."""
        self._recorded_at = time.monotonic()
        is_caught_up = self._is_complete() and self._foreign_record is None and self._has_read(end_offsets)
        cleared_facts = {"error": None, "failed": None, "diverged": None} if is_caught_up else {}
        self._save_status(lastcontact=time.time(), **cleared_facts)

    def _has_read(self, end_offsets: EndOffsets) -> bool:
        return all(
            (self._consumer.position(partition, timeout_ms=POLL_MILLISECONDS) or 0) >= end
            for partition, end in end_offsets.items()
        )

    def _save_status(self, **facts: Any) -> None:
        self._context.states.update(self._link.id, offsets=self._partition_marks.to_json() or None, **facts)

    def _reset_offsets(self, reason: str) -> BrokenFeed:
        """An error after forgetting the offsets, so that the topic is read from its beginning next time."""
        self._partition_marks = PartitionMarks({})
        return BrokenFeed(reason)
