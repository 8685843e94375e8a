"""The Kafka brokers to publish to: connections, topics and their last records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition, errors
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector

from annals.domain.subscriptions.sink_uris import KAFKA
from annals.projections.kafka.records import RecordPosition, record_position
from annals.projections.outgoing import certificates
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import Credential, SinkTarget
from annals.projections.subscriptions.sinks.kafka.producer import ReportingConnectionManager, resolver_proxy_url
from annals.projections.subscriptions.sinks.kafka.sender import producer_config
from annals.projections.subscriptions.transport.connect import target_address

#: The maximum seconds for connecting, and the seconds after which brokers that acknowledge nothing count as
#: unreachable.
CONNECT_SECONDS: Final = 10.0
ACKNOWLEDGE_SECONDS: Final = 30.0
_TIMEOUTS: Final = {"bootstrap_timeout_ms": int(1000 * CONNECT_SECONDS), "reconnect_backoff_max_ms": 1000}
OnConnectionError = Callable[[Exception], None]
_LOOPBACK: Final = "localhost"
#: The settings of created topics: records stay forever, as in the log.
_RETENTION_SETTINGS: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class InsecureCredential(Exception):
    """A credential would be sent over a channel without TLS."""


@dataclass(frozen=True, slots=True)
class CertificateAuthorities:
    """The trusted certificate authorities, in addition to the machine's. ca: path of a PEM file, or empty."""

    ca: str = ""


class TopicContents(NamedTuple):
    """The contents of a topic.

    records: how many were ever written, including duplicates. last: the record with the highest number, None if no
    record of a registry is left.
    """

    records: int
    last: RecordPosition | None


class KafkaCluster:
    """Brokers and their connection settings; connected only during an operation."""

    def __init__(
        self,
        uri: str,
        credential: Credential | None = None,
        authorities: CertificateAuthorities | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        """Sets up access to the brokers, without connecting.

        uri: `SSL://one:9092,two:9092` with all options of a sink (subscriptions 2.5). resolver: decides which addresses
        may be connected to, also for brokers that others name; None for brokers that the operator names.
        Raises: InvalidSubscription for an invalid URI; InsecureCredential.
        """
        target = SinkTarget("", uri, {"clientid": "annals-publishing", "acks": "all"}, credential=credential)
        sink_address = target_address(target, KAFKA)
        if credential and not sink_address.tls and not all(_is_loopback(host) for host, _ in sink_address.servers):
            raise InsecureCredential("credentials are sent over TLS only; begin with SSL://")
        settings = producer_config(target)
        shared_names = ("bootstrap_servers", "client_id", "security_protocol")
        shared_settings = {
            name: value for name, value in settings.items() if name in shared_names or name.startswith("sasl_")
        }
        tls_settings = (
            {"ssl_context": certificates.client_tls_context(authorities or CertificateAuthorities())}
            if sink_address.tls
            else {}
        )
        self._config = shared_settings | tls_settings | _TIMEOUTS
        self._resolver = resolver
        #: Additional settings of a producer.
        self.producer_settings: Mapping[str, Any] = {
            name: settings[name] for name in settings.keys() - shared_settings.keys()
        }

    def create_topics(self, topics: Sequence[str], partitions: int) -> None:
        """Creates the topics that do not exist yet. partitions: -1 for the brokers' default.

        Raises: KafkaError.
        """
        with closing(self.open_client(KafkaAdminClient)) as admin:
            missing_topics = sorted({*topics} - {*admin.list_topics()})
            if missing_topics:
                topic_settings = {
                    "num_partitions": partitions,
                    "replication_factor": -1,
                    "configs": _RETENTION_SETTINGS,
                }
                admin.create_topics(dict.fromkeys(missing_topics, topic_settings), wait_for_metadata=True)

    def topic_contents(self, topic: str) -> TopicContents:
        """The contents of a topic. Raises: KafkaError."""
        consumer = self.open_client(KafkaConsumer, group_id=None, enable_auto_commit=False)
        with closing(consumer):
            topic_partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
            beginning_offsets, end_offsets = (
                consumer.beginning_offsets(topic_partitions),
                consumer.end_offsets(topic_partitions),
            )
            nonempty_partitions = {
                topic_partition
                for topic_partition in topic_partitions
                if end_offsets[topic_partition] > beginning_offsets[topic_partition]
            }
            consumer.assign(sorted(nonempty_partitions))
            for topic_partition in nonempty_partitions:
                consumer.seek(topic_partition, end_offsets[topic_partition] - 1)
            last_positions = [
                last_position
                for record in _next_of_each_partition(consumer, nonempty_partitions)
                if (last_position := record_position(record.headers))
            ]
        return TopicContents(sum(end_offsets.values()), max(last_positions, default=None))

    def open_client(
        self, client_class: Callable[..., Any], on_failure: OnConnectionError = lambda error: None, **settings: Any
    ) -> Any:
        """A client of the library. on_failure: called for each failed connection, in the client's thread.

        Raises: KafkaError with the reason if no broker could be reached.
        """
        connection_errors: list[Exception] = []
        clients: list[Any] = []

        def network(**configs: Any) -> KafkaNetClient:
            selector = NetworkSelector(**configs)
            manager = ReportingConnectionManager(selector, failing, **configs)
            clients.append(KafkaNetClient(selector, manager))
            if self._resolver is not None:
                manager.config["proxy_url"] = resolver_proxy_url(clients[0], self._resolver)
            return clients[0]

        def failing(error: Exception) -> None:
            connection_errors.append(error)
            on_failure(error)

        try:
            return client_class(kafka_client=network, **self._config, **settings)
        except BaseException as error:
            for client in clients:  # the library would leave its thread running
                client.close()
            if connection_errors and isinstance(error, errors.KafkaTimeoutError):
                raise connection_errors[-1] from None
            raise


def _next_of_each_partition(consumer: Any, topic_partitions: set[TopicPartition]) -> Iterator[Any]:
    """The next record of each partition. Raises: KafkaTimeoutError."""
    deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
    remaining = set(topic_partitions)
    while remaining:
        if time.monotonic() > deadline:
            raise errors.KafkaTimeoutError("the last records cannot be read")
        for topic_partition, records in consumer.poll(timeout_ms=500).items():
            if topic_partition in remaining:
                remaining.discard(topic_partition)
                yield records[0]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == _LOOPBACK
