"""Sends events to Kafka topics.

`send` may and should be called many times at once: records in flight share requests, so throughput comes from events
that need not wait for each other. Records whose sends wait for each other keep their order. With `acks` 0 an event
counts as delivered once it is handed to the connection (SUB-709).
Spec: CloudEvents Kafka protocol binding 1.0; subscriptions 2.5, 7 and 8.3; SUB-204, SUB-305, SUB-702, SUB-705, SUB-709.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cloudevents.core.v1.event import CloudEvent
from kafka import errors
from kafka.net.sasl.oauth import AbstractTokenProvider

from annals.domain.subscriptions.sink_uris import KAFKA
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import (
    DELIVERED,
    Credential,
    DeliveryResult,
    Outcome,
    SinkTarget,
)
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome
from annals.projections.subscriptions.sinks.kafka.producer import AsyncKafkaProducer
from annals.projections.subscriptions.sinks.kafka.records import encode_record
from annals.projections.subscriptions.transport.connect import target_address

#: The client id of producers whose subscription sets none.
DEFAULT_CLIENT_ID: Final = "annals"
#: Bytes of records that share a request to one partition.
_BATCH_BYTES: Final = 64 << 10
_ACKS: Final[Mapping[str, int | str]] = {"0": 0, "1": 1, "all": "all", "-1": "all"}

# At its lowest level the library logs the bytes that it sends, including passwords. At higher levels it repeats what
# outcomes say, once for each connection that it tries.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class KafkaSink:
    """A producer for one topic. While connected, it uses one thread of the client library; otherwise none.

    After a failed attempt it reconnects. Thus addresses are checked again, and no record that was given up can still be
    in flight when later events are sent.
    """

    #: Largest useful number of concurrent `send` calls.
    concurrency: Final = 32

    def __init__(self, target: SinkTarget, resolver: Resolver) -> None:
        self._target = target
        self._resolver = resolver
        self._address = target_address(target, KAFKA)
        self._secrets = _secret_values(target.credential)
        self._producer: AsyncKafkaProducer | None = None
        self._connect_task: asyncio.Task[AsyncKafkaProducer] | None = None
        self._ready_producer: AsyncKafkaProducer | None = None
        self._end_tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """The outcome of an event. For several events, the first outcome that is not a success, if any."""
        if len(events) == 1:
            return await self._send(events[0])
        outcomes = await asyncio.gather(*map(self._send, events))
        return next((outcome for outcome in outcomes if outcome.result is not DeliveryResult.DELIVERED), DELIVERED)

    async def close(self) -> None:
        """Ends connections and threads. Records that are not acknowledged within a second must be retried."""
        self._is_closed = True
        if self._connect_task is not None:
            if self._producer is None:
                self._connect_task.cancel()
            else:
                self._producer.cancel_connecting()
            await asyncio.wait([self._connect_task])
        if self._ready_producer is not None:
            self._drop(self._ready_producer, gracefully=True)
        if self._end_tasks:
            await asyncio.wait(self._end_tasks)

    async def _send(self, event: CloudEvent) -> Outcome:
        target, producer = self._target, None
        try:
            record = encode_record(event, target.contentmode, target.settings.get("partitionkeyextractor", "subject"))
        except ValueError:
            return Outcome(DeliveryResult.REJECTED, "event", "the event cannot be written as a record")
        try:
            async with asyncio.timeout(target.timeout):
                producer = self._ready_producer or await self._wait_for_producer()
                await producer.send(record)
                return DELIVERED
        except Exception as error:
            return self._failure_outcome(producer, error)

    def _failure_outcome(self, producer: AsyncKafkaProducer | None, error: Exception) -> Outcome:
        """The outcome of a failed attempt. producer: None if it was not connected in time."""
        if isinstance(error, TimeoutError | errors.KafkaTimeoutError | errors.IllegalStateError):
            # The reason of the last failure says more than the timeout.
            last_producer = producer or self._producer
            error = (
                last_producer.failure
                if last_producer is not None and last_producer.failure is not None
                else _clear_error(error)
            )
        outcome = error_outcome(error, *self._secrets)
        if producer is not None and outcome.result is not DeliveryResult.REJECTED:
            self._drop(producer)
        return outcome

    async def _wait_for_producer(self) -> AsyncKafkaProducer:
        if self._is_closed:
            raise errors.KafkaConnectionError("the sink is closed")
        if self._connect_task is None:
            self._connect_task = asyncio.create_task(self._connect())
            self._connect_task.add_done_callback(self._on_connected)
        return await asyncio.shield(self._connect_task)

    async def _connect(self) -> AsyncKafkaProducer:
        target = self._target
        topic = str(target.settings.get("topicname", "cloudevents"))
        producer = AsyncKafkaProducer(topic, producer_config(target), self._resolver, target.timeout, self._drop)
        await self._resolve_servers(producer)
        self._producer = producer
        await producer.connect()
        return producer

    def _on_connected(self, connect_task: asyncio.Task[AsyncKafkaProducer]) -> None:
        self._connect_task = self._producer = None
        if not connect_task.cancelled() and connect_task.exception() is None:
            self._ready_producer = connect_task.result()

    async def _resolve_servers(self, producer: AsyncKafkaProducer) -> None:
        """Resolves all bootstrap addresses before connecting to any. Raises: KafkaError."""
        lookup_errors: list[Exception] = []
        for host, port in self._address.servers:
            try:
                await producer.resolve_broker(host, port)
            except errors.KafkaConnectionError as error:
                lookup_errors.append(error)
        if len(lookup_errors) == len(self._address.servers):
            raise lookup_errors[0]

    def _drop(self, producer: AsyncKafkaProducer, gracefully: bool = False) -> None:
        """Ends a producer that was in use. Later events get a new one."""
        if producer is self._ready_producer:
            self._ready_producer = None
            end_task = asyncio.create_task(producer.close(gracefully))
            self._end_tasks.add(end_task)
            end_task.add_done_callback(self._end_tasks.discard)


def producer_config(target: SinkTarget) -> dict[str, Any]:
    """The settings of kafka-python's producer for a target, except timeouts and address resolution."""
    sink_address, credential, settings = target_address(target, KAFKA), target.credential, target.settings
    security_protocol = "SSL" if sink_address.tls else "PLAINTEXT"
    return {
        "bootstrap_servers": [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in sink_address.servers
        ],
        "client_id": settings.get("clientid") or DEFAULT_CLIENT_ID,
        "acks": _ACKS[str(settings.get("acks", "all"))],
        # After one record that is too large, the library's idempotent producer fails all later ones too. The guarantee
        # is at least once, and records of one key wait for each other.
        "enable_idempotence": False,
        # Keeps the order when the library resends. Requests grow instead, which is faster.
        "max_in_flight_requests_per_connection": 1,
        "batch_size": _BATCH_BYTES,
        "security_protocol": security_protocol if credential is None else f"SASL_{security_protocol}",
        **_sasl_settings(credential),
    }


def _sasl_settings(credential: Credential | None) -> dict[str, Any]:
    if credential is None:
        return {}
    if credential.type == "PLAIN":
        return {
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": credential.identifier,
            "sasl_plain_password": credential.secret,
        }
    return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": _TokenProvider(credential.token)}


class _TokenProvider(AbstractTokenProvider):
    """A fixed token. The deliverer renews tokens and opens a new sink for a new token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def _secret_values(credential: Credential | None) -> tuple[str, ...]:
    return () if credential is None else (credential.secret, credential.token)


def _clear_error(error: Exception) -> Exception:
    if isinstance(error, TimeoutError):
        clear_error = errors.KafkaTimeoutError("nothing was acknowledged in time")
    elif isinstance(error, errors.IllegalStateError):
        clear_error = errors.KafkaConnectionError("the connection was given up")
    else:
        clear_error = error
    return clear_error  # type: ignore[no-any-return]
