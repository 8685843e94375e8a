"""Wraps kafka-python's transactional producer: a transaction is published as a whole, or not at all.

After any failure the producer cannot be used any more. The next one with the same transactional id aborts what the
failed one has begun, and shuts it out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from kafka import KafkaProducer, errors

from annals.projections.kafka.cluster import ACKNOWLEDGE_SECONDS, KafkaCluster
from annals.projections.kafka.records import PublishedRecord
from annals.projections.subscriptions.contract import DeliveryResult
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome, is_final

#: The maximum bytes of a record: more than brokers accept, so that they decide.
_MAX_RECORD_BYTES: Final = 1 << 30
#: Milliseconds after which the brokers abort a transaction whose publisher has vanished: longer than any wait here.
TRANSACTION_TIMEOUT_MS = 60_000
_CHECK_SECONDS: Final = 0.2

#: The last offset in each partition, by the topic's name after the prefix and the partition.
LastOffsets = dict[tuple[str, int], int]


class RecordRefused(Exception):
    """A record that brokers will never accept. error: of the client."""

    def __init__(self, record: PublishedRecord, error: Exception) -> None:
        super().__init__(str(error))
        self.record = record
        self.error = error


class PublishingStopped(Exception):
    """The publisher has to stop."""


class Producer:
    """Publishes transactions on the topics with one prefix, until one fails."""

    def __init__(self, cluster: KafkaCluster, prefix: str, is_stopped: Callable[[], bool]) -> None:
        """Connects, and ends the transactions of earlier producers with the same prefix.

        is_stopped: whether to stop waiting for brokers.
        Raises: KafkaError; PublishingStopped.
        """
        self._prefix = prefix
        self._is_stopped = is_stopped
        self._connection_error: Exception | None = None
        self._producer = cluster.open_client(
            KafkaProducer,
            self._connection_failed,
            **{**cluster.producer_settings, "enable_idempotence": True},
            transactional_id=f"annals.{prefix}",
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            max_block_ms=int(1000 * ACKNOWLEDGE_SECONDS),
            delivery_timeout_ms=int(1000 * ACKNOWLEDGE_SECONDS),
            request_timeout_ms=int(1000 * ACKNOWLEDGE_SECONDS),
            max_request_size=_MAX_RECORD_BYTES,
            metrics_enabled=False,
        )
        self._transactions = self._producer._transaction_manager
        try:
            self._wait_for(self._transactions.initialize_transactions())
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Begins a transaction. Raises: KafkaError."""
        with self._precise_errors():
            self._transactions.begin_transaction()

    def send(self, records: Iterable[PublishedRecord]) -> LastOffsets:
        """Returns when all in-sync replicas have acknowledged the records; readers do not see them before `commit`.

        Raises: RecordRefused; PublishingStopped; KafkaError.
        """
        sent: list[tuple[PublishedRecord, Any]] = []
        try:
            with self._precise_errors():
                for record in records:
                    future = self._send(record)
                    sent.append((record, future))
                for _, future in sent:
                    self._wait_until(partial(_wait_for_acknowledgement, future))
        except errors.KafkaError:
            _raise_refused(sent)
            raise
        return {(record.topic, record.partition): future.value.offset for record, future in sent}

    def commit(self) -> None:
        """Makes the transaction's records visible. After an error, only the topics show whether they are.

        Raises: PublishingStopped; KafkaError.
        """
        with self._precise_errors():
            self._wait_for(self._transactions.begin_commit())

    def close(self) -> None:
        """Ends connections and threads. An open transaction is aborted by the next producer, or after a minute."""
        sender = self._producer._sender
        # The client's own `close` waits for records that cannot be sent.
        sender.force_close()
        sender.join(ACKNOWLEDGE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            self._producer.close(timeout=0)

    def _send(self, record: PublishedRecord) -> Any:
        return self._producer.send(
            f"{self._prefix}.{record.topic}",
            key=record.key,
            value=record.value,
            headers=record.headers,
            partition=record.partition,
        )

    @contextlib.contextmanager
    def _precise_errors(self) -> Iterator[None]:
        """After the first error the client fails every operation with one that does not say the reason."""
        try:
            yield
        except errors.KafkaError as error:
            raise (self._transactions.last_error or error) from None

    def _wait_for(self, result: Any) -> None:
        self._producer._sender.wakeup()
        self._wait_until(lambda seconds: bool(result.wait(int(1000 * seconds))))

    def _wait_until(self, wait: Callable[[float], bool]) -> None:
        """Waits for the brokers. wait: waits for some seconds, and returns whether all is done.

        Raises: PublishingStopped; KafkaError, which is KafkaTimeoutError after ACKNOWLEDGE_SECONDS.
        """
        deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
        while not wait(_CHECK_SECONDS):
            if self._connection_error is not None:
                raise self._connection_error
            if self._is_stopped():
                raise PublishingStopped
            if time.monotonic() > deadline:
                raise errors.KafkaTimeoutError("the brokers do not acknowledge records")

    # Runs in the client's thread.

    def _connection_failed(self, error: Exception) -> None:
        if is_final(error):  # the library would retry forever
            self._connection_error = error


def _wait_for_acknowledgement(future: Any, seconds: float) -> bool:
    """Whether a record is acknowledged after some seconds at most. Raises: KafkaError when it failed."""
    if not future.is_done:
        with contextlib.suppress(errors.KafkaTimeoutError):
            future.get(seconds)
    if future.failed():
        raise future.exception
    return bool(future.is_done)


def _raise_refused(sent: Iterable[tuple[PublishedRecord, Any]]) -> None:
    """Raises: RecordRefused if one of the records was refused for good; the others failed because of it."""
    for record, future in sent:
        if future.failed() and error_outcome(future.exception).result is DeliveryResult.REJECTED:
            raise RecordRefused(record, future.exception)
