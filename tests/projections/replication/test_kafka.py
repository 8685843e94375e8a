"""A registry follows another one over the Kafka topic that `annals publish` fills; the broker is a real one."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from kafka import KafkaProducer

from annals.api.registry.open_registry import open_registry
from annals.api.replication.wiring import build_link_context
from annals.api.settings.settings import Settings
from annals.commands.store.log import Store
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import WriteLink
from annals.domain.replication.link import Link
from annals.domain.replication.link_document import parse_link
from annals.projections.kafka.cluster import KafkaCluster
from annals.projections.kafka.log_topic import LogTopic
from annals.projections.kafka.publisher import Publisher
from annals.projections.kafka.windows import WindowReader
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.kafka_pull import KafkaPull
from annals.projections.replication.remote.remote_client import RemoteError
from tests.support.brokers.kafka import Kafka, all_records, kafka
from tests.support.brokers.suite import HOST, PASSWORD, USER, WRONG
from tests.support.polling import until
from tests.support.registries.restarted import MASTER_KEY, Registry, registries, wait_until_equal_logs
from tests.support.serving import environment

pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]

PARTITIONS = 3
#: A link waits longer after each failure, and a broker takes time to appear in its own metadata.
SECONDS = 120.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as running:
        yield running


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    return str(request.node.name).partition("[")[0]


@contextmanager
def publishing(registry: Registry, broker: Kafka, prefix: str, *options: str) -> Iterator[None]:
    """Runs `annals publish`, which follows the log, in another process."""
    own = ("--kafka", broker.own(), "--prefix", prefix, "--partitions", str(PARTITIONS))
    command = [sys.executable, "-m", "annals", "publish", *own, *(options or ("--documents",))]
    given = environment(ANNALS_DATABASE=registry.database)
    with (registry.home / "publish.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=registry.home, env=given, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def publisher(registry: Registry, broker: Kafka, prefix: str) -> Iterator[Publisher]:
    """A publisher in this process."""
    with closing(Store(registry.database)) as store:
        cluster = KafkaCluster(f"kafka://{broker.own()}")
        yield Publisher(WindowReader(store, [LogTopic(documents=True)]), cluster, prefix, partitions=PARTITIONS)


def follow(replica: Registry, broker: Kafka, prefix: str, **members: Any) -> None:
    """Links a registry to a topic."""
    url = f"kafka://{broker.own()}/{prefix}.log"
    replica.done("PUT", "/-/links/primary", {"url": url, "dialect": "kafka", **members})


def documents(registry: Registry) -> dict[str, Any]:
    """The documents and epochs of all Versions, by the ids of Group, Schema and Version."""
    path = "/schemagroups?inline=schemas.versions.schema&binary"
    found: dict[str, Any] = registry.request("GET", path).json()
    return {
        f"{group}/{name}/{version}": (each.get("schema"), each.get("schemabase64"), each["epoch"])
        for group, one in found.items()
        for name, schema in one["schemas"].items()
        for version, each in schema["versions"].items()
    }


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_replica_over_a_topic(
    tmp_path: Path, broker: Kafka, prefix: str, kind: str, request: pytest.FixtureRequest
) -> None:
    # LEG-910: interactions are copied whole under their own ids, in log order, whichever partitions they come from
    databases = {"b": request.getfixturevalue("postgres_url")} if kind == "postgresql" else {}
    name = f"{prefix}-{kind}"
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(4, 5)
        a.done("POST", "/subscriptions", {"protocol": "HTTP", "sink": "http://127.0.0.1/x"})
        with publishing(a, broker, name):
            follow(b, broker, name)
            wait_until_equal_logs(a, b, seconds=SECONDS)
            a.write("group1/s1/again", name="written later", schema="one more")
            a.done("DELETE", "/schemagroups/group0")
            a.done("PATCH", "/", {"name": "with a name"})
            wait_until_equal_logs(a, b, seconds=SECONDS)
        assert documents(b) == documents(a)
        assert b.request("GET", "/schemagroups/group1/schemas/s1").json() == "one more"
        status = b.status("primary")
        assert (status["state"], status["position"]) == ("active", a.head()["position"])
        # LEG-909: clients cannot write what a link copied
        assert b.request("PUT", "/schemagroups/group1", {}).status_code == 400
        b.verified()


def test_a_part_of_a_registry_over_a_topic(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # LEG-901: a link copies only the Group in its scope; local Groups outside of it stay
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix):
        a.fill(3, 2)
        b.write("mine/s/1", schema="of this registry")
        follow(b, broker, prefix, scope={"groups": ["/schemagroups/group1"]})
        a.write("group1/last/1", schema="the last one")
        until(lambda: b.request("GET", "/schemagroups/group1/schemas/last").is_success, SECONDS)
        wanted = {xid: each for xid, each in documents(a).items() if xid.startswith("group1/")}
        mine = {xid: each for xid, each in documents(b).items() if xid.startswith("mine/")}
        assert documents(b) == wanted | mine
        b.verified()


@pytest.mark.long
def test_a_replica_that_is_killed(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # LEG-910: wherever the replica is killed, no interaction is lost or recorded twice
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix):
        a.fill(30, 40)
        follow(b, broker, prefix)
        for _ in range(3):
            before = b.status("primary")["position"]
            until(partial(_is_beyond, b, before), SECONDS)
            b.kill()
            a.fill(3, 40, start=f"after{before}x")
            b.start()
        wait_until_equal_logs(a, b, seconds=SECONDS)
        assert documents(b) == documents(a)
        b.verified()


def test_a_replica_that_was_away_goes_on_at_its_offsets(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix):
        a.fill(4, 5)
        follow(b, broker, prefix)
        wait_until_equal_logs(a, b, seconds=SECONDS)
        b.stop()
        a.fill(4, 5, start="meanwhile")
        b.start()
        found = b.status("primary")["offsets"]
        # The state of a partition is its last ingested record: offset, number and time.
        assert sorted(found) and all(number <= a.head()["position"] for _, number, _ in found.values())
        wait_until_equal_logs(a, b, seconds=SECONDS)
        b.verified()


@pytest.mark.long
def test_a_broker_that_goes_away_and_comes_back(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # LEG-901: the status says why nothing arrives; when the broker is back, the link resumes where it stopped
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix):
        a.fill(3, 5)
        follow(b, broker, prefix)
        wait_until_equal_logs(a, b, seconds=SECONDS)
        broker.stop()
        try:
            a.fill(3, 5, start="meanwhile")
            until(lambda: b.status("primary")["state"] == "failing", SECONDS)
            assert f"{broker.own()}/{prefix}.log does not answer" in b.status("primary")["error"]
        finally:
            broker.start()
        wait_until_equal_logs(a, b, seconds=SECONDS)
        assert "error" not in b.status("primary")
        b.verified()


def test_records_that_are_there_twice(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # EV-79: records that a copy between topics duplicates have the same numbers, and are ingested once
    with registries(tmp_path, "a", "b") as (a, b), publisher(a, broker, f"{prefix}-first") as one:
        a.fill(3, 5)
        one.publish_once(Event())
        records = all_records(broker.own(), f"{prefix}-first.log")
        broker.make(f"{prefix}.log", PARTITIONS)
        with closing(KafkaProducer(bootstrap_servers=broker.own())) as producer:
            for record in [*records, *records]:
                producer.send(
                    f"{prefix}.log", record.value, record.key, [*record.headers], partition=record.partition
                ).get(60)
        follow(b, broker, prefix)
        wait_until_equal_logs(a, b, seconds=SECONDS)
        b.verified()


def test_a_recreated_topic(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # EV-79: the stored offsets are invalid for a recreated topic; the link detects that and resumes by numbers
    with registries(tmp_path, "a", "b") as (a, b), publisher(a, broker, prefix) as one:
        a.fill(3, 5)
        one.publish_once(Event())
        follow(b, broker, prefix)
        wait_until_equal_logs(a, b, seconds=SECONDS)
        b.stop()
        broker.delete(f"{prefix}.log")
        a.fill(9, 5, start="later")
        one.publish_once(Event())
        b.start()
        wait_until_equal_logs(a, b, seconds=SECONDS)
        b.verified()


def test_a_topic_without_documents(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # LEG-902: documents are part of an interaction, which is not ingested without them
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix, "--once"):
        a.fill(1, 1)
        follow(b, broker, prefix)
        until(lambda: "publish the log with --documents" in b.status("primary").get("error", ""), SECONDS)
        assert b.request("GET", "/schemagroups/group0").status_code == 404


def test_another_registry_on_the_topic(tmp_path: Path, broker: Kafka, prefix: str) -> None:
    # LEG-910: the state is checked after each interaction, so a registry with a history of its own diverges
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix):
        a.fill(1, 2)
        b.fill(1, 1, start="own")
        before = b.head()["state"]
        follow(b, broker, prefix)
        until(lambda: b.status("primary")["state"] == "diverged", SECONDS)
        assert b.head()["state"] == before


@pytest.mark.parametrize(("scheme", "listener"), [("kafka", "SASL"), ("ssl", "SASLTLS")], ids=["plain", "TLS"])
def test_credentials(
    tmp_path: Path, broker: Kafka, prefix: str, scheme: str, listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LEG-901: a link sends its basic credential as SASL PLAIN, over TLS to a broker whose certificate is trusted
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **options: look_up(_found(host), *more, **options))
    name = f"{prefix}-{listener}"
    url = f"{scheme}://127.0.0.1:{broker.ports[listener]}/{name}.log"
    with registries(tmp_path, "a") as (a,), publisher(a, broker, name) as one:
        a.fill(1, 3)
        one.publish_once(Event())
        refused = pytest.raises(RemoteError, match=r"does not answer: .*authentication")
        with linked(tmp_path / "wrong.db", broker, url, WRONG) as (link, tools), refused:
            KafkaPull(link, tools).run()
        with linked(tmp_path / "right.db", broker, url, PASSWORD) as (link, tools), ThreadPoolExecutor(1) as pool:
            running = pool.submit(KafkaPull(link, tools).run)
            until(lambda: running.done() or tools.states.read(link.id).cursor == a.head()["position"], SECONDS)
            tools.stopping.set()
            running.result()


@contextmanager
def linked(database: Path, broker: Kafka, url: str, password: str) -> Iterator[tuple[Link, LinkWorkerContext]]:
    """An empty registry in this process; yields its link, which has this password, and the context of its worker."""
    settings = Settings(
        database=f"sqlite:///{database}", master_key=MASTER_KEY, sinks_ca=str(broker.ca), sinks_allow="127.0.0.1"
    )
    registry = open_registry(settings)
    secret = {"type": "basic", "username": USER, "password": password}
    found = parse_link({"url": url, "dialect": "kafka", "credential": secret})
    command = WriteLink("/-/links/primary", True, found.attributes, found.secrets)
    with closing(registry), closing(LinkStates(settings.database)) as states:
        registry.command_bus.submit(command, Caller("root", Role.ADMIN)).result()
        (link,) = registry.readers.quick_view().links.all()
        yield link, build_link_context(settings, registry, states)


def _found(host: str) -> str:
    return "127.0.0.1" if host == HOST else host


def _is_beyond(registry: Registry, position: int) -> bool:
    return bool(registry.status("primary")["position"] > position)
