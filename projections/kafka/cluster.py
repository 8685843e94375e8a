"""The Kafka brokers to publish to: connections, topics and their ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition, errors
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector

from annals.domain.subscriptions.sink_uris import KAFKA
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
RETENTION_SETTINGS: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
#: The settings of a topic of which only the last record counts.
COMPACTION_SETTINGS: Final = {"cleanup.policy": "compact", "segment.bytes": str(16 << 20)}
_READ_COMMITTED: Final[dict[str, Any]] = {
    "group_id": None,
    "enable_auto_commit": False,
    "isolation_level": "read_committed",
}


class InsecureCredential(Exception):
    """A credential would be sent over a channel without TLS."""


@dataclass(frozen=True, slots=True)
class CertificateAuthorities:
    """The trusted certificate authorities, in addition to the machine's. ca: path of a PEM file, or empty."""

    ca: str = ""


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

    @property
    def servers(self) -> str:
        """The brokers that the operator names: hosts and ports, without a credential."""
        return ",".join(self._config["bootstrap_servers"])

    def id(self) -> str | None:
        """What tells the cluster from all others, whichever of its brokers answers; None if it has no id.

        Raises: KafkaError.
        """
        with closing(self.open_client(KafkaAdminClient)) as admin:
            id: str | None = admin.describe_cluster().get("cluster_id")
            return id

    def create_topics(
        self, topics: Sequence[str], partitions: int, settings: Mapping[str, str] = RETENTION_SETTINGS
    ) -> None:
        """Creates the topics that do not exist yet. partitions: -1 for the brokers' default.

        Raises: KafkaError.
        """
        with closing(self.open_client(KafkaAdminClient)) as admin:
            missing_topics = sorted({*topics} - {*admin.list_topics()})
            if missing_topics:
                topic_settings = {
                    "num_partitions": partitions,
                    "replication_factor": -1,
                    "configs": settings,
                }
                admin.create_topics(dict.fromkeys(missing_topics, topic_settings), wait_for_metadata=True)

    def end_offsets(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """The end offset of each partition of some topics, by topic. Raises: KafkaError."""
        with closing(self.open_client(KafkaConsumer, **_READ_COMMITTED)) as consumer:
            partitions = {
                topic: [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or ())]
                for topic in topics
            }
            offsets = consumer.end_offsets([partition for every in partitions.values() for partition in every])
        return {topic: [offsets[partition] for partition in every] for topic, every in partitions.items()}

    def last_value(self, topic: str) -> bytes | None:
        """The value of the last committed record of a topic with one partition; None if there is none.

        Raises: KafkaError.
        """
        partition = TopicPartition(topic, 0)
        with closing(self.open_client(KafkaConsumer, **_READ_COMMITTED)) as consumer:
            consumer.assign([partition])
            [beginning], [end] = (
                offsets.values()
                for offsets in (consumer.beginning_offsets([partition]), consumer.end_offsets([partition]))
            )
            # The end of each transaction takes an offset, too, and records of aborted ones are not returned.
            distance, start = 4, end
            while start > beginning:
                start, distance = max(beginning, end - distance), 8 * distance
                consumer.seek(partition, start)
                if records := _records_until(consumer, partition, end):
                    return bytes(records[-1].value)
        return None

    def key_values(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """The keys and values of all committed records of a topic, in order. Raises: KafkaError; ValueError for a topic
        that does not exist, or that has several partitions and so no order."""
        with closing(self.open_client(KafkaConsumer, **_READ_COMMITTED)) as consumer:
            if (consumer.partitions_for_topic(topic) or set()) != {0}:
                raise ValueError(f"the topic {topic} does not exist, or has several partitions")
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            [end] = consumer.end_offsets([partition]).values()
            return [(record.key, record.value) for record in _records_until(consumer, partition, end)]

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


def _records_until(consumer: Any, partition: TopicPartition, end: int) -> list[Any]:
    """The records from the consumer's position up to an offset. Raises: KafkaTimeoutError."""
    deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
    found: list[Any] = []
    while consumer.position(partition) < end:
        if time.monotonic() > deadline:
            raise errors.KafkaTimeoutError(f"the end of {partition.topic} cannot be read")
        for records in consumer.poll(timeout_ms=500).values():
            found += records
            deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == _LOOPBACK
