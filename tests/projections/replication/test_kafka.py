"""A registry follows another one over the Kafka topic that `annals publish` fills; the broker is a real one."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from kafka import KafkaProducer, errors

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
from annals.projections.replication.log.log_lines import BrokenFeed
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
@pytest.mark.parametrize("written", [3, 0])
def test_a_broker_that_goes_away_and_comes_back(tmp_path: Path, broker: Kafka, prefix: str, written: int) -> None:
    # LEG-901: the status says why nothing arrives; when the broker is back, the link resumes where it stopped
    prefix = f"{prefix}-{written}"
    with registries(tmp_path, "a", "b") as (a, b), publishing(a, broker, prefix):
        a.fill(3, 5)
        follow(b, broker, prefix)
        wait_until_equal_logs(a, b, seconds=SECONDS)
        broker.stop()
        try:
            a.fill(written, 5, start="meanwhile")
            until(lambda: b.status("primary")["state"] == "failing", SECONDS)
            assert f"{broker.own()}/{prefix}.log does not answer" in b.status("primary")["error"]
        finally:
            broker.start()
        wait_until_equal_logs(a, b, seconds=SECONDS)
        until(lambda: b.status("primary")["state"] == "active", SECONDS)
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
        with linked(tmp_path / "right.db", broker, url, PASSWORD) as (link, tools), running(link, tools) as future:
            until(lambda: future.done() or tools.states.read(link.id).cursor == a.head()["position"], SECONDS)
        future.result()


def test_an_error_that_repeats_a_secret(tmp_path: Path, broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-303: error texts have no secrets, whatever a broker answers
    def refuse(*_: Any, **__: Any) -> None:
        raise errors.SaslAuthenticationFailedError(f"wrong password {PASSWORD} of {USER}")

    monkeypatch.setattr(KafkaCluster, "open_client", refuse)
    error = pytest.raises(RemoteError, match=rf"wrong password \*\*\* of {USER}")
    with linked(tmp_path / "b.db", broker, f"kafka://{broker.own()}/any", PASSWORD) as (link, tools), error:
        KafkaPull(link, tools).run()


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, broker: Kafka) -> list[Any]:
    """The records of a log, in its order. The last interaction has several."""
    with registries(tmp_path_factory.mktemp("published"), "a") as (a,), publisher(a, broker, "published") as one:
        a.fill(3, 2)
        one.publish_once(Event())
        return sorted(all_records(broker.own(), "published.log"), key=record_number)


def record_number(record: Any) -> int:
    return int(dict(record.headers)["annals_number"])


@contextmanager
def following(
    home: Path, broker: Kafka, topic: str, records: Sequence[tuple[int, Any]]
) -> Iterator[tuple[Link, LinkWorkerContext]]:
    """An empty registry in this process, with a link to a topic of these records, each with its partition."""
    broker.make(topic, PARTITIONS)
    with closing(KafkaProducer(bootstrap_servers=broker.own())) as producer:
        for partition, record in records:
            producer.send(topic, record.value, record.key, [*record.headers], partition=partition)
        producer.flush(60)
    with linked(home / "b.db", broker, f"kafka://{broker.own()}/{topic}") as found:
        yield found


@pytest.mark.parametrize("missing", ["the first records", "the last record"])
def test_a_record_that_never_arrives(
    tmp_path: Path, broker: Kafka, records: list[Any], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LEG-901: the status names the position that nothing completes; partitions without records hold none either
    monkeypatch.setattr("annals.projections.replication.log.kafka_pull.STALL_SECONDS", 2.0)
    kept, position = (records[5:], 1) if missing == "the first records" else (records[:-1], len(records))
    topic = f"missing{position}.log"
    with following(tmp_path, broker, topic, [(0, each) for each in kept]) as (link, tools):
        with running(link, tools) as future:
            until(future.done, SECONDS)
        with pytest.raises(BrokenFeed, match=f"the topic {topic} has no record of position {position}$"):
            future.result()
        # the next run does not read what is imported again
        assert ("offsets" in tools.states.read(link.id).status) == (missing == "the last record")


def test_an_interaction_on_a_topic_has_a_limit(tmp_path: Path, broker: Kafka, records: list[Any]) -> None:
    # LEG-910: an endless interaction takes no more memory than the limit; others before it are imported
    sizes = dict.fromkeys(sorted({int(dict(each.headers)["annals_first"]) for each in records}), 0)
    for each in records:
        sizes[int(dict(each.headers)["annals_first"])] += len(each.value)
    limit = max(sizes.values()) - 1
    refused = next(first for first, size in sizes.items() if size > limit)
    with following(tmp_path, broker, "large.log", [(0, each) for each in records]) as (link, tools):
        limited = replace(tools, max_interaction_bytes=limit)
        with running(link, limited) as future:
            until(future.done, SECONDS)
        with pytest.raises(BrokenFeed, match=f"has more than {limit} bytes, the limit of ANNALS_LINK_MAX_INTERACTION"):
            future.result()
        assert (tools.states.read(link.id).cursor or 0) == refused - 1


@pytest.mark.parametrize(
    ("replaces", "value", "headers"),
    [
        (True, None, {}),
        (True, b"{}", {"annals_number": b"many"}),
        (False, b"hello", None),
        (False, None, None),
    ],
    ids=["a tombstone", "a wrong number", "no headers", "nothing"],
)
def test_a_record_that_is_not_from_a_registry(
    tmp_path: Path,
    broker: Kafka,
    records: list[Any],
    replaces: bool,
    value: bytes | None,
    headers: dict[str, bytes] | None,
    request: pytest.FixtureRequest,
) -> None:
    # LEG-910: whole interactions are appended, whatever else is on the topic; the status says what it is
    (*before, last), topic = records, f"foreign-{request.node.callspec.id.replace(' ', '-')}.log"
    foreign = last._replace(
        value=value, headers=[] if headers is None else [*{**dict(last.headers), **headers}.items()]
    )
    complete = [(1, each) for each in (before if replaces else records)]
    with following(tmp_path, broker, topic, [(0, foreign), *complete]) as (link, tools):
        with running(link, tools) as future:
            until(future.done, SECONDS)
        with pytest.raises(BrokenFeed, match=f"the topic {topic} has a record that is not from a registry"):
            future.result()
        first_of_last = int(dict(last.headers)["annals_first"])
        assert tools.states.read(link.id).cursor == (first_of_last - 1 if replaces else record_number(last))


def test_a_quiet_topic_after_an_outage(
    tmp_path: Path, broker: Kafka, records: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # LEG-901: the status is that of the last contact, also if nothing is written
    monkeypatch.setattr("annals.projections.replication.log.kafka_pull.STATUS_SECONDS", 0.1)
    with following(tmp_path, broker, "quiet.log", [(0, each) for each in records]) as (link, tools):

        def status() -> Mapping[str, Any]:
            return tools.states.read(link.id).status

        with running(link, tools):
            until(lambda: tools.states.read(link.id).cursor == record_number(records[-1]), SECONDS)
        tools.states.update(link.id, error="the topic does not answer", failed=1.0, lastcontact=None)
        tools.stopping.clear()
        with running(link, tools):
            contact = until(lambda: not {"error", "failed"} & {*status()} and status().get("lastcontact"), SECONDS)
            until(lambda: status()["lastcontact"] > contact, SECONDS)


def test_a_recreated_topic_that_is_shorter(tmp_path: Path, broker: Kafka, records: list[Any]) -> None:
    # LEG-913: what was read of another topic is forgotten, so the link reads this one from its beginning
    with following(tmp_path, broker, "shorter.log", [(0, each) for each in records]) as (link, tools):
        tools.states.update(link.id, offsets={"0": [1000, 1, 0]})
        with pytest.raises(BrokenFeed, match="is shorter than when it was read last"):
            KafkaPull(link, tools).run()
        with running(link, tools):
            until(lambda: tools.states.read(link.id).cursor == record_number(records[-1]), SECONDS)


@contextmanager
def running(link: Link, tools: LinkWorkerContext) -> Iterator[Future[None]]:
    """Runs a link during the block."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(KafkaPull(link, tools).run)
        finally:
            tools.stopping.set()


@contextmanager
def linked(
    database: Path, broker: Kafka, url: str, password: str | None = None
) -> Iterator[tuple[Link, LinkWorkerContext]]:
    """An empty registry in this process; yields its link, which may have a password, and the context of its worker."""
    settings = Settings(
        database=f"sqlite:///{database}", master_key=MASTER_KEY, sinks_ca=str(broker.ca), sinks_allow="127.0.0.1"
    )
    registry = open_registry(settings)
    secret = {"credential": {"type": "basic", "username": USER, "password": password}} if password else {}
    found = parse_link({"url": url, "dialect": "kafka", **secret})
    command = WriteLink("/-/links/primary", True, found.attributes, found.secrets)
    with closing(registry), closing(LinkStates(settings.database)) as states:
        registry.command_bus.submit(command, Caller("root", Role.ADMIN)).result()
        (link,) = registry.readers.quick_view().links.all()
        yield link, build_link_context(settings, registry, states)


def _found(host: str) -> str:
    return "127.0.0.1" if host == HOST else host


def _is_beyond(registry: Registry, position: int) -> bool:
    return bool(registry.status("primary")["position"] > position)
