"""Wraps kafka-python's producer so that each partition keeps its order despite any failure.

A reader that drops repeated numbers loses nothing only if no partition ever holds a record before one with a smaller
number. A failed record is therefore never skipped: one batch of a partition is in flight at a time, retriable errors
are retried without limit, and after the first other failure nothing more is sent.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from threading import Condition
from typing import Final

from kafka import KafkaProducer, errors

from annals.projections.kafka.cluster import ACKNOWLEDGE_SECONDS, KafkaCluster
from annals.projections.kafka.records import PublishedRecord
from annals.projections.subscriptions.sinks.kafka.outcomes import is_final

#: The maximum bytes of records in flight, unless a single record has more.
MAX_IN_FLIGHT_BYTES: Final = 8 << 20
#: The maximum bytes of a record: more than brokers accept, so that they decide.
_MAX_RECORD_BYTES: Final = 1 << 30
#: The client's own timeout in milliseconds: never, because giving up one record would let later ones pass it.
_NO_TIMEOUT_MS: Final = 365 * 86_400_000
_CHECK_SECONDS: Final = 0.2


class RecordFailed(Exception):
    """A record that brokers do not accept. error: of the client."""

    def __init__(self, record: PublishedRecord, error: Exception) -> None:
        super().__init__(str(error))
        self.record = record
        self.error = error


class PublishingStopped(Exception):
    """The publisher has to stop."""


class Producer:
    """Sends records to the topics with one prefix, until one fails; then it cannot be used any more."""

    def __init__(self, cluster: KafkaCluster, prefix: str, is_stopped: Callable[[], bool]) -> None:
        """is_stopped: whether to stop waiting for brokers. Raises: KafkaError when none can be reached."""
        self._prefix = prefix
        self._is_stopped = is_stopped
        self._condition = Condition()
        self._unacknowledged = 0
        self._bytes = 0
        self._failure: RecordFailed | None = None
        self._connection_error: Exception | None = None
        self._producer = cluster.open_client(
            KafkaProducer,
            self._connection_failed,
            # After a refused record, idempotence fails all later ones in the partition: bad for a sink, but required
            # here.
            **{**cluster.producer_settings, "enable_idempotence": True},
            max_block_ms=int(1000 * ACKNOWLEDGE_SECONDS),
            delivery_timeout_ms=_NO_TIMEOUT_MS,
            max_request_size=_MAX_RECORD_BYTES,
            metrics_enabled=False,
        )

    def send(self, record: PublishedRecord) -> None:
        """Queues a record after the earlier ones; waits while too many bytes are in flight.

        Raises: as `flush`; then the record was not sent.
        """
        self._wait_until(lambda: self._bytes + record.size <= MAX_IN_FLIGHT_BYTES or not self._unacknowledged)
        with self._condition:
            self._unacknowledged += 1
            self._bytes += record.size
        try:
            future = self._producer.send(
                f"{self._prefix}.{record.topic}", value=record.value, key=record.key, headers=record.headers
            )
        except errors.KafkaError as error:
            self._on_result(record, error)
            assert self._failure is not None
            raise self._failure from error  # an earlier failure if there is one: it closed the client
        future.add_both(lambda got: self._on_result(record, got if isinstance(got, Exception) else None))

    def flush(self) -> None:
        """Returns when everything sent is acknowledged by all in-sync replicas.

        Raises: RecordFailed; PublishingStopped; KafkaError when a credential is refused; TimeoutError when nothing is
        acknowledged for ACKNOWLEDGE_SECONDS, after which it may be called again.
        """
        self._wait_until(lambda: not self._unacknowledged)

    def close(self) -> None:
        """Ends connections and threads; unacknowledged records may or may not arrive."""
        sender = self._producer._sender
        # The client's own `close` waits for records that cannot be sent.
        sender.force_close()
        sender.join(ACKNOWLEDGE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            self._producer.close(timeout=0)

    def _wait_until(self, is_done: Callable[[], bool]) -> None:
        with self._condition:
            waiting_count, changed_at = self._unacknowledged, time.monotonic()
            while True:
                if self._failure is not None:
                    raise self._failure
                if is_done():
                    return
                if self._connection_error is not None:
                    raise self._connection_error
                if self._is_stopped():
                    raise PublishingStopped
                if waiting_count != self._unacknowledged:
                    waiting_count, changed_at = self._unacknowledged, time.monotonic()
                elif time.monotonic() - changed_at > ACKNOWLEDGE_SECONDS:
                    raise TimeoutError
                self._condition.wait(_CHECK_SECONDS)

    # Runs in the client's thread.

    def _on_result(self, record: PublishedRecord, error: Exception | None) -> None:
        with self._condition:
            self._unacknowledged -= 1
            self._bytes -= record.size
            if error is not None and self._failure is None:
                self._failure = RecordFailed(record, error)
                # Called inside the client's thread, so before it starts the next batch.
                self._producer._sender.force_close()
            if self._failure is not None or not self._unacknowledged or self._bytes < MAX_IN_FLIGHT_BYTES // 2:
                self._condition.notify_all()

    def _connection_failed(self, error: Exception) -> None:
        if is_final(error):  # the library would retry forever
            self._connection_error = error
