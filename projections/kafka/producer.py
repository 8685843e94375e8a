"""kafka-python's producer, kept to the order of each partition whatever goes wrong.

A reader that drops the numbers which it has seen loses nothing only if no partition ever holds a record before one of
a smaller number. So records that fail are never jumped over: one batch of a partition is under way at a time, what can
be tried again is tried again without end, and with the first failure of another kind nothing more is sent.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from threading import Condition
from typing import Final

from kafka import KafkaProducer, errors

from projections.kafka.cluster import ACKNOWLEDGE_SECONDS, KafkaCluster
from projections.kafka.records import PublishedRecord
from projections.subscriptions.sinks.kafka.outcomes import is_final

#: Bytes of records that are under way at most, but for one that alone has more.
MAX_IN_FLIGHT_BYTES: Final = 8 << 20
#: Bytes of a record: more than brokers take, so that they decide.
_LARGEST: Final = 1 << 30
#: Milliseconds in which the client itself gives up: never, as giving up one record would let later ones pass it.
_NEVER: Final = 365 * 86_400_000
_LOOK: Final = 0.2


class RecordFailed(Exception):
    """A record that brokers do not take. error: of the client."""

    def __init__(self, record: PublishedRecord, error: Exception) -> None:
        super().__init__(str(error))
        self.record = record
        self.error = error


class PublishingStopped(Exception):
    """Somebody wants the work to end."""


class Producer:
    """Sends records of the topics with one prefix, until one fails; then it is of no use any more."""

    def __init__(self, cluster: KafkaCluster, prefix: str, stopped: Callable[[], bool]) -> None:
        """stopped: whether to stop waiting for brokers. Raises: KafkaError where none can be reached."""
        self._prefix = prefix
        self._stopped = stopped
        self._change = Condition()
        self._waiting = 0
        self._bytes = 0
        self._failed: RecordFailed | None = None
        self._refused: Exception | None = None
        self._producer = cluster.opened(
            KafkaProducer,
            self._connection_failed,
            # After a record that is refused it fails all that follow in the partition: bad for a sink, wanted here.
            **{**cluster.producing, "enable_idempotence": True},
            max_block_ms=int(1000 * ACKNOWLEDGE_SECONDS),
            delivery_timeout_ms=_NEVER,
            max_request_size=_LARGEST,
            metrics_enabled=False,
        )

    def send(self, record: PublishedRecord) -> None:
        """Has a record sent behind those before it; waits while many bytes are under way.

        Raises: as `settle`, and then it was not sent.
        """
        self._wait(lambda: self._bytes + record.size <= MAX_IN_FLIGHT_BYTES or not self._waiting)
        with self._change:
            self._waiting += 1
            self._bytes += record.size
        try:
            pending = self._producer.send(
                f"{self._prefix}.{record.topic}", value=record.value, key=record.key, headers=record.headers
            )
        except errors.KafkaError as error:
            self._done(record, error)
            assert self._failed is not None
            raise self._failed from error  # an earlier one, if there is: with it the client was closed
        pending.add_both(lambda got: self._done(record, got if isinstance(got, Exception) else None))

    def settle(self) -> None:
        """Returns when all that was sent is acknowledged by all replicas in sync.

        Raises: RecordFailed; PublishingStopped; KafkaError when a credential is refused; TimeoutError when nothing is
        acknowledged for a while, and then it may be called again.
        """
        self._wait(lambda: not self._waiting)

    def close(self) -> None:
        """Ends connections and threads; what is not acknowledged may arrive or not."""
        sender = self._producer._sender
        # Of its own, `close` waits for what cannot be sent.
        sender.force_close()
        sender.join(ACKNOWLEDGE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            self._producer.close(timeout=0)

    def _wait(self, done: Callable[[], bool]) -> None:
        with self._change:
            seen, since = self._waiting, time.monotonic()
            while True:
                if self._failed is not None:
                    raise self._failed
                if done():
                    return
                if self._refused is not None:
                    raise self._refused
                if self._stopped():
                    raise PublishingStopped
                if seen != self._waiting:
                    seen, since = self._waiting, time.monotonic()
                elif time.monotonic() - since > ACKNOWLEDGE_SECONDS:
                    raise TimeoutError
                self._change.wait(_LOOK)

    # In the client's thread.

    def _done(self, record: PublishedRecord, error: Exception | None) -> None:
        with self._change:
            self._waiting -= 1
            self._bytes -= record.size
            if error is not None and self._failed is None:
                self._failed = RecordFailed(record, error)
                # From inside the client's thread, so before it takes up the next batch.
                self._producer._sender.force_close()
            if self._failed is not None or not self._waiting or self._bytes < MAX_IN_FLIGHT_BYTES // 2:
                self._change.notify_all()

    def _connection_failed(self, error: Exception) -> None:
        if is_final(error):  # the library would try for ever
            self._refused = error
