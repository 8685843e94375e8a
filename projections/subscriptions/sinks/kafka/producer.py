"""kafka-python's producer for asyncio. It connects only to checked addresses and never blocks the event loop.

The library connects in its own thread. It resolves all names in one place, including those of brokers that other
brokers name. This module plugs the project's resolver into that place, instead of the system's.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future as Promise
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from kafka import KafkaProducer, errors
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from annals.projections.outgoing import certificates
from annals.projections.outgoing.resolver import ForbiddenAddress, Resolver
from annals.projections.subscriptions.sinks.kafka.outcomes import KafkaConnectionRefused, is_final
from annals.projections.subscriptions.sinks.kafka.records import KafkaRecord
from annals.projections.subscriptions.transport.connect import INSECURE_CHANNEL, failure_outcome

#: Time limit for connecting, in seconds. After that, the deliverer's retry delays serve better.
CONNECT_SECONDS: Final = 10.0
#: Milliseconds between checks whether the topic is known.
_POLL_MILLISECONDS: Final = 200
_SCHEME: Final = "annals"

_Result = TypeVar("_Result")
_Address = tuple[Any, ...]
#: Resolve functions by the proxy URL that selects them.
_LOOKUPS: Final[dict[str, Callable[[str, int], str]]] = {}
_NUMBERS: Final = itertools.count(1)


class ResolverSocket(KafkaNetSocket):
    """Resolves broker addresses with a `Resolver`. The library finds this class by the scheme of `proxy_url`."""

    SCHEMES = (_SCHEME,)

    def __init__(self, proxy_url: str) -> None:
        self._resolve = _LOOKUPS[proxy_url]

    def dns_lookup(self, host: str, port: int, raise_error: bool = False) -> list[_Address]:
        """The one address to connect to. Raises: KafkaConnectionRefused; KafkaConnectionError."""
        address = self._resolve(host, port)
        return list(
            socket.getaddrinfo(
                address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
            )
        )


def resolver_proxy_url(client: Any, resolver: Resolver) -> str:
    """The `proxy_url` that makes a client outside an event loop connect only to addresses from a resolver."""
    url = f"{_SCHEME}://{next(_NUMBERS)}"
    _LOOKUPS[url] = lambda host, port: asyncio.run(_resolve_broker(resolver, host, port))
    weakref.finalize(client, _LOOKUPS.pop, url, None)
    return url


async def _resolve_broker(resolver: Resolver, host: str, port: int) -> str:
    """The address of a broker. Raises: KafkaConnectionRefused; KafkaConnectionError."""
    try:
        return await resolver.resolve(host, port)
    except ForbiddenAddress as error:
        raise KafkaConnectionRefused(failure_outcome(error)) from None
    except OSError:
        raise errors.KafkaConnectionError("the host has no address") from None


class ReportingConnectionManager(KafkaConnectionManager):
    """A connection manager that reports failed connections and limits the time of handshakes."""

    def __init__(self, net: NetworkSelector, on_failure: Callable[[Exception], None], **configs: Any) -> None:
        super().__init__(net, **configs)
        self._report = on_failure
        self._final_error: Exception | None = None
        self._watched_connections: weakref.WeakSet[Any] = weakref.WeakSet()

    def get_connection(self, node_id: Any, **options: Any) -> Any:
        if self._final_error is not None and not self.bootstrapped:
            raise self._final_error
        connection = super().get_connection(node_id, **options)
        if connection not in self._watched_connections and not connection.init_future.is_done:
            self._watched_connections.add(connection)
            connection.init_future.add_errback(self._on_failure)
            # The library has no timeout for TLS handshakes.
            self._net.call_later(
                self.config["socket_connection_setup_timeout_ms"] / 1000, lambda: _close_unready(connection)
            )
        return connection

    async def _build_transport(self, node: Any, timeout_at: Any = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv
        transport._sock_recv = lambda: _read_before_end(*receive())
        return transport

    def _on_failure(self, error: Exception) -> None:
        if is_final(error):
            self._final_error = error
        self._report(error)


def _read_before_end(data: bytes, error: Exception | None) -> tuple[bytes, Exception | None]:
    """What a socket returned, with the end of stream held back while there is data before it.

    The library would drop that data, such as the answer of a broker that refuses a credential and closes at once.
    """
    return data, None if data else error


def _close_unready(connection: Any) -> None:
    if not connection.init_future.is_done:
        connection.close(errors.KafkaConnectionError("the broker does not identify itself in time"))


class AsyncKafkaProducer:
    """A producer for one topic. Call its methods in the event loop in which it was created.

    failure: why it cannot be used any more, or why its last connection failed since the last success.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, Any],
        resolver: Resolver,
        timeout: float,
        on_broken: Callable[[AsyncKafkaProducer], None],
    ) -> None:
        """A producer that is not connected yet.

        settings: of kafka-python's producer.
        timeout: time limit of an attempt.
        on_broken: called when this producer cannot be used any more.
        """
        self.failure: Exception | None = None
        self._topic = topic
        self._settings = settings
        self._resolver = resolver
        self._timeout = timeout
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._url = f"{_SCHEME}://{next(_NUMBERS)}"
        self._acknowledgements: deque[tuple[asyncio.Future[None], Exception | None]] = deque()
        self._is_settling = False
        self._has_ended = False
        self._client: Any = None
        self._producer: Any = None

    async def connect(self) -> None:
        """Connects and fetches the topic's metadata. Raises: KafkaError; then the producer has ended."""
        _LOOKUPS[self._url] = self._resolve
        try:
            await _run_in_thread(self._connect)
        except asyncio.CancelledError:
            self.cancel_connecting()
            raise
        except (errors.KafkaTimeoutError, errors.UnknownTopicOrPartitionError) as error:
            # An earlier failure, such as of a broker that knows the topic, says more.
            raise (self.failure or error) from None

    def cancel_connecting(self) -> None:
        """Makes a running `connect` end soon."""
        self._has_ended = True
        if self._client is not None and self._producer is None:
            with contextlib.suppress(RuntimeError):  # its manager has ended
                self._client._manager.call_soon(self._client._manager.close)

    async def resolve_broker(self, host: str, port: int) -> str:
        """The address of a broker. Raises: KafkaConnectionRefused; KafkaConnectionError."""
        address = await _resolve_broker(self._resolver, host, port)
        if self._settings["security_protocol"] == "SASL_PLAINTEXT" and not ip_address(address).is_loopback:
            raise KafkaConnectionRefused(INSECURE_CHANNEL)
        return address

    def send(self, record: KafkaRecord) -> asyncio.Future[None]:
        """A future that is done when the record is acknowledged. Both the call and the future raise KafkaError."""
        acknowledgement: asyncio.Future[None] = self._loop.create_future()
        record_future = self._producer.send(self._topic, value=record.value, key=record.key, headers=record.headers)
        record_future.add_both(
            lambda got: self._acknowledge(acknowledgement, got if isinstance(got, Exception) else None)
        )
        return acknowledgement

    async def close(self, gracefully: bool = False) -> None:
        """Ends connections and threads. Records that are not acknowledged fail.

        gracefully: first sends waiting records, for at most a second.
        """
        self._has_ended = True
        await _run_in_thread(lambda: self._end(gracefully))
        self._settle_acknowledgements()

    # The methods below run in the producer's threads.

    def _connect(self) -> None:
        try:
            self._create(time.monotonic() + min(CONNECT_SECONDS, 0.9 * self._timeout))
        except BaseException:
            self._end(gracefully=False)
            raise

    def _create(self, deadline: float) -> None:
        delivery_timeout = int(900 * self._timeout)
        self._producer = KafkaProducer(
            **self._settings,
            kafka_client=self._create_client,
            proxy_url=self._url,
            ssl_context=certificates.client_tls_context(self._resolver)
            if "SSL" in self._settings["security_protocol"]
            else None,
            bootstrap_timeout_ms=int(1000 * (deadline - time.monotonic())),
            max_block_ms=_POLL_MILLISECONDS,
            delivery_timeout_ms=delivery_timeout,
            request_timeout_ms=delivery_timeout // 2,
            reconnect_backoff_max_ms=1000,
            metrics_enabled=False,
        )
        while not self._knows_topic():
            if self._has_ended or time.monotonic() > deadline:
                raise errors.UnknownTopicOrPartitionError(f"the brokers have no topic {self._topic}")
        # From now on the event loop uses the producer and must not block: a send without topic metadata fails at once.
        self._producer.config["max_block_ms"] = 0

    def _knows_topic(self) -> bool:
        try:
            return bool(self._producer.partitions_for(self._topic))
        except errors.KafkaTimeoutError:
            return False

    def _create_client(self, **configs: Any) -> KafkaNetClient:
        selector = NetworkSelector(**configs)
        manager = ReportingConnectionManager(
            selector, self._on_failure, socket_connection_setup_timeout_ms=configs["request_timeout_ms"], **configs
        )
        self._client = KafkaNetClient(selector, manager)
        if self._has_ended:
            self._client._manager.close()
        return self._client

    def _resolve(self, host: str, port: int) -> str:
        lookup = asyncio.run_coroutine_threadsafe(self.resolve_broker(host, port), self._loop)
        try:
            return lookup.result(self._timeout)
        except TimeoutError:
            lookup.cancel()
            raise errors.KafkaConnectionError("looking up the host takes too long") from None

    def _on_failure(self, error: Exception) -> None:
        self.failure = error
        if is_final(error):
            # The library would retry forever without a pause.
            self._call_in_loop(self._on_broken, self)

    def _acknowledge(self, acknowledgement: asyncio.Future[None], error: Exception | None) -> None:
        # One call into the loop handles all answers that arrive before it runs.
        self._acknowledgements.append((acknowledgement, error))
        if not self._is_settling:
            self._is_settling = True
            self._call_in_loop(self._settle_acknowledgements)

    def _call_in_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed and nobody waits for the call
            self._loop.call_soon_threadsafe(function, *arguments)

    def _end(self, gracefully: bool) -> None:
        _LOOKUPS.pop(self._url, None)
        producer, client = self._producer, self._client
        if producer is None:
            if client is not None:
                client.close()
            return
        if gracefully:
            with contextlib.suppress(errors.KafkaError):
                producer.close(timeout=1)
        # `close` alone would wait for records that cannot be sent, and then leave its thread running.
        sender = producer._sender
        sender.force_close()
        with contextlib.suppress(RuntimeError):  # its manager has ended
            client._manager.call_soon(client._manager.close)
        sender.join()
        with contextlib.suppress(errors.KafkaError):
            producer.close(timeout=0)

    def _settle_acknowledgements(self) -> None:
        self._is_settling = False
        while self._acknowledgements:
            acknowledgement, error = self._acknowledgements.popleft()
            if acknowledgement.done():
                continue
            if error is None:
                self.failure = None
                acknowledgement.set_result(None)
            else:
                acknowledgement.set_exception(error)


async def _run_in_thread(function: Callable[[], _Result]) -> _Result:
    """The result of a blocking call in its own thread. In a shared pool, dead brokers would block other work."""
    promise: Promise[_Result] = Promise()

    def run() -> None:
        try:
            promise.set_result(function())
        except BaseException as error:
            promise.set_exception(error)

    promise.set_running_or_notify_cancel()
    threading.Thread(target=run, name="annals-kafka", daemon=True).start()
    return await asyncio.shield(asyncio.wrap_future(promise))
