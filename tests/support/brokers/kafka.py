"""A Kafka broker of one node, from Maven's artifacts, and consumers that read from it.

It has a listener for each way to connect: without credentials, for the tests' own clients; with SASL (PLAIN and
OAUTHBEARER), with and without TLS; with TLS alone; and one that advertises an internal name (`INSIDE`).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers.certificates import issue_certificate
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER, Broker, Received, Receiver
from tests.support.downloads.maven import jars, java
from tests.support.polling import until
from tests.support.ports import free_port, wait_for_port

BROKER: Final = "org.apache.kafka:kafka_2.13:4.3.0"
#: The host name that the broker advertises on one of its listeners.
INSIDE: Final = "inside.test"
#: The largest record in bytes that the broker accepts; less than the default of clients.
LARGEST: Final = 100_000
#: A user who may connect and may not write.
READER: Final = Credential("PLAIN", identifier="reader", secret="reads only")

_LISTENERS: Final = {
    "OWN": ("PLAINTEXT", "127.0.0.1"),
    "SASL": ("SASL_PLAINTEXT", HOST),
    "TLS": ("SSL", HOST),
    "SASLTLS": ("SASL_SSL", HOST),
    "INNER": ("PLAINTEXT", INSIDE),
    "CONTROLLER": ("PLAINTEXT", "127.0.0.1"),
}
#: How often a broker is started until it creates topics.
STARTS: Final = 3
_OPTIONS: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"


class Kafka(Broker):
    """A broker in a temporary folder. ports: by listener. topic: the topic of `target`."""

    protocol = "KAFKA"
    reconnects_after_timeout = False
    slow = 60.0

    def __init__(self) -> None:
        self._java, self._classpath = java(), os.pathsep.join(map(str, jars(BROKER)))
        self._home = Path(tempfile.mkdtemp(prefix="annals-kafka-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._files = issue_certificate(self._home / "tls", HOST, "127.0.0.1")
        self.ca = self._files.ca
        self.ports = {name: free_port() for name in _LISTENERS}
        self.topic = ""
        self._format()

    def start(self) -> None:
        # A broker that was killed sometimes cannot create topics after its next start; another restart helps.
        for _ in range(STARTS):
            self._launch()
            if self._settles():
                return
            self.stop()
        raise RuntimeError((self._home / "log").read_text()[-2000:])

    def _launch(self) -> None:
        with (self._home / "log").open("ab") as log:
            command = self._command("kafka.Kafka", self._home / "server.properties")
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._home)
        wait_for_port(self.ports["OWN"], lambda: self._process is not None and self._process.poll() is None, 60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Ends the broker for good."""
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def own(self, name: str = "OWN") -> str:
        """The address of a listener, for clients of the tests."""
        return f"127.0.0.1:{self.ports[name]}"

    def target(
        self,
        *,
        contentmode: str = "structured",
        credential: Credential | None = GOOD,
        tls: bool = False,
        seconds: float = 10.0,
        host: str = HOST,
        port: int | None = None,
        **settings: Any,
    ) -> SinkTarget:
        name = {True: "SASLTLS", False: "SASL"}[tls] if credential else {True: "TLS", False: "OWN"}[tls]
        scheme = ("SASL_SSL" if credential else "SSL") if tls else "kafka"
        own = {"topicname": self.topic or self.fresh(), "partitionkeyextractor": "subject", "acks": "all"}
        return SinkTarget(
            subscription="s1",
            uri=f"{scheme}://{host}:{port or self.ports[name]}",
            settings=own | settings,
            contentmode=contentmode,
            credential=credential,
            timeout=seconds,
        )

    def fresh(self, partitions: int = 1, **configs: str) -> str:
        """The name of a new topic."""
        self.topic = f"events-{next(self._numbers)}"
        self.make(self.topic, partitions, **configs)
        return self.topic

    def make(self, topic: str, partitions: int = 1, **configs: str) -> None:
        """Creates a topic; returns when clients see it, which is after the response to the request."""
        with self._admin() as admin:
            settings = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
            admin.create_topics({topic: settings}, wait_for_metadata=True)

    def delete(self, topic: str) -> None:
        """Deletes a topic; returns when the broker no longer lists it, which is after the response to the request."""
        with self._admin() as admin:
            admin.delete_topics([topic])
            until(lambda: topic not in admin.list_topics())
        self.topic = ""

    def restart(self, password: str) -> None:
        """Restarts the broker with another password for its user."""
        self.stop()
        self._configure(password)
        self.start()

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        # A broker that has just started is not in its own metadata yet; the client's backoff would double each time.
        patience = {"reconnect_backoff_max_ms": 200, "bootstrap_timeout_ms": 60_000}
        admin = KafkaAdminClient(bootstrap_servers=self.own(), **patience)
        try:
            yield admin
        finally:
            admin.close()

    @contextmanager
    def receiving(self) -> Iterator[Receiver]:
        with reader(self.own(), self.fresh()) as found:
            yield found

    def _settles(self) -> bool:
        """Whether topics can be created within a minute."""
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            try:
                self.fresh()
            except Exception:
                time.sleep(0.1)
            else:
                return True
        return False

    def _command(self, *arguments: str | Path) -> list[str | Path]:
        return [self._java, *_OPTIONS, "-cp", self._classpath, *arguments]

    def _configure(self, password: str) -> Path:
        properties = self._home / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties(password).items()))
        return properties

    def _format(self) -> None:
        properties = self._configure(PASSWORD)
        command = self._command("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", properties)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    def _properties(self, password: str) -> dict[str, object]:
        keys = self._files.key.read_text() + self._files.certificate.read_text()
        store = self._home / "store.pem"
        store.write_text(keys)
        at = {name: f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()}
        advertised = {name: f"{name}://{host}:{self.ports[name]}" for name, (_, host) in _LISTENERS.items()}
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        users = {USER: password, READER.identifier: READER.secret}
        known = " ".join(f'user_{name}="{secret}"' for name, secret in users.items())
        bearer = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        unsecured = "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.ports['CONTROLLER']}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "OWN",
            "listeners": ",".join(at.values()),
            "advertised.listeners": ",".join(url for name, url in advertised.items() if name != "CONTROLLER"),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, (kind, _) in _LISTENERS.items()),
            "log.dirs": self._home / "data",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": store,
            "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
            **{
                f"listener.name.{name}.{key}": value
                for name in ("sasl", "sasltls")
                for key, value in {
                    "plain.sasl.jaas.config": f"{plain} required {known};",
                    "oauthbearer.sasl.jaas.config": f'{bearer} required unsecuredLoginStringClaim_sub="broker";',
                    "oauthbearer.sasl.server.callback.handler.class": (
                        f"{unsecured}.OAuthBearerUnsecuredValidatorCallbackHandler"
                    ),
                }.items()
            },
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER}",
            "message.max.bytes": LARGEST,
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # A killed broker can register again after its session has timed out.
            "broker.session.timeout.ms": 4000,
            "broker.heartbeat.interval.ms": 500,
            "num.network.threads": 2,
            "num.io.threads": 2,
        }


class _Receiver:
    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    def take(self, count: int, seconds: float = 60.0) -> list[Received]:
        return [as_cloudevent(each) for each in next_records(self._consumer, count, seconds)]


@contextmanager
def reader(server: str, topic: str) -> Iterator[Receiver]:
    """A client that reads all of a topic, from its beginning."""
    with topic_consumer(server, topic) as consumer:
        yield _Receiver(consumer)


@contextmanager
def topic_consumer(server: str, topic: str) -> Iterator[KafkaConsumer]:
    """A consumer of all of a topic, from its beginning."""
    consumer = KafkaConsumer(
        bootstrap_servers=server, group_id=None, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    try:
        partitions = consumer.partitions_for_topic(topic)
        assert partitions, f"there is no topic {topic}"
        consumer.assign([TopicPartition(topic, number) for number in partitions])
        yield consumer
    finally:
        consumer.close()


def next_records(consumer: KafkaConsumer, count: int, seconds: float = 60.0) -> list[Any]:
    """The next records; fewer if no more arrive in time."""
    found: list[Any] = []
    ends = time.monotonic() + seconds
    while len(found) < count and (left := ends - time.monotonic()) > 0:
        polled = consumer.poll(timeout_ms=int(1000 * min(left, 1)), max_records=count - len(found))
        found += [record for records in polled.values() for record in records]
    return found


def all_records(server: str, topic: str, seconds: float = 60.0) -> list[Any]:
    """Every committed record of a topic; those of one partition are in order."""
    found: list[Any] = []
    ends = time.monotonic() + seconds
    with topic_consumer(server, topic) as consumer:
        end_offsets = consumer.end_offsets(list(consumer.assignment()))
        # Some offsets are transaction markers or aborted records, which consumers do not get.
        while any(consumer.position(partition) < end for partition, end in end_offsets.items()):
            assert time.monotonic() < ends, f"the end of {topic} is not reached"
            found += [record for records in consumer.poll(timeout_ms=500).values() for record in records]
    return found


@contextmanager
def kafka() -> Iterator[Kafka]:
    """Runs a broker during the block."""
    broker = Kafka()
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def as_cloudevent(record: Any) -> Received:
    """A record, parsed by the CloudEvents library, without the key, which the library would add to the event."""
    headers = dict(record.headers)
    message = KafkaMessage(headers, None, record.value)
    structured = headers["content-type"].startswith(b"application/cloudevents")
    read = from_structured if structured else from_binary
    event = read(message, JSONFormat(), CloudEvent)
    assert isinstance(event, CloudEvent)
    return Received("structured" if structured else "binary", event)


def token(subject: str, lifetime: float = 3600.0) -> str:
    """A token that the broker accepts: an unsigned JWT."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": subject, "iat": now, "exp": now + lifetime})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."
