"""What a publisher does when it, its brokers or its database are interrupted."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from annals.projections.kafka import producer as producing
from annals.projections.kafka.entity_topic import ENTITIES
from annals.projections.kafka.event_topic import EVENTS
from annals.projections.kafka.log_agreement import TopicsDiverged
from annals.projections.kafka.log_topic import LOG
from annals.projections.kafka.producer import Producer, RecordRefused
from annals.projections.kafka.publisher import AnotherPublisher
from annals.projections.kafka.topic_position import POSITIONS
from annals.projections.kafka.topics import TOPICS
from annals.projections.kafka.windows import WindowReader
from tests.projections.kafka.publishing_rig import PARTITIONS, Rig, backup, fill
from tests.support.brokers.kafka import LARGEST, Kafka
from tests.support.polling import until
from tests.support.registries.recorded import Registry
from tests.support.serving import environment

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


#: The console command with small transactions, so that a kill can hit any step of one.
_SMALL_WINDOWS = """
from annals.api.cli.main import main
from annals.projections.kafka import windows
windows.WINDOW_EVENTS = 10
main()
"""


@contextmanager
def child(rig: Rig, url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A publisher that follows the log in its own process; killed at the end."""
    options = ("--partitions", str(PARTITIONS), "--topics", ",".join(rig.topics))
    command = [sys.executable, "-c", _SMALL_WINDOWS, "publish", "--kafka", rig.broker.own(), "--prefix", rig.prefix]
    with subprocess.Popen([*command, *options], cwd=folder, env=environment(ANNALS_DATABASE=url)) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def following(rig: Rig) -> Iterator[None]:
    """A publisher that follows the log in a thread; an error that ended it early is raised at the end."""
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rig.publisher().run, stop)
        try:
            yield
        finally:
            stop.set()
        running.result(60)


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, 10])
def test_publish_resumes_after_kill(registry: Registry, broker: Kafka, tmp_path: Path, kills: int) -> None:
    # EV-79: wherever the publisher is killed, no record is lost or duplicated
    end = fill(registry, 400 * kills)
    rig, chance = Rig(registry.store, broker), Random(kills)
    for _ in range(kills):
        before = rig.position()
        with child(rig, registry.url, tmp_path):
            until(partial(lambda before: rig.position() > before, before), 120)
            time.sleep(chance.random())  # so that the kill hits any step
    assert rig.position() < end  # it was not finished
    assert rig.publish()[LOG] == end
    rig.check()


@pytest.mark.parametrize("step", ["begin", "send", "commit"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_failure_at_each_step(
    registry: Registry, broker: Kafka, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    # EV-79: the topics are the same as without the failure, whether the step took effect or not
    fill(registry, 30)
    rig = Rig(registry.store, broker)
    rig.publish()
    fill(registry, 30, start=30)
    original = getattr(Producer, step)

    class Killed(BaseException):
        pass

    def fail(*arguments: Any) -> None:
        if is_done:
            original(*arguments)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Producer, step, fail)
        rig.publish()
    rig.publish()
    rig.check()


@pytest.mark.long
def test_two_publishers_at_once(registry: Registry, broker: Kafka) -> None:
    # The later publisher fences off the earlier one, which reports that; no record is duplicated
    fill(registry, 300)
    rig = Rig(registry.store, broker)
    stop = Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(rig.publisher().run, stop)
        until(lambda: rig.position() > 0, 120)
        second = pool.submit(rig.publisher().run, stop)
        number = 300
        while not (first.done() or second.done()):
            number += 1
            end = fill(registry, 1, start=number)
            time.sleep(0.1)
        until(lambda: rig.position() == end, 120)
        stop.set()
    [error] = [each.exception() for each in (first, second) if each.exception() is not None]
    assert (type(error), str(error)) == (AnotherPublisher, f"another publisher continues {rig.prefix}")
    rig.check()


@pytest.mark.long
def test_a_transaction_that_takes_too_long(registry: Registry, broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # The brokers abort it and fence off the publisher, which continues, because no other publisher was the cause
    monkeypatch.setattr(producing, "TRANSACTION_TIMEOUT_MS", 1000)
    fill(registry, 30)
    rig, original, delays = Rig(registry.store, broker), Producer.commit, iter((0.0, 20.0))

    def commit(producer: Producer) -> None:
        time.sleep(next(delays, 0.0))
        original(producer)

    monkeypatch.setattr(Producer, "commit", commit)
    rig.publish()
    assert next(delays, None) is None
    rig.check()


@pytest.mark.long
def test_a_broker_that_goes_away_and_comes_back(registry: Registry, broker: Kafka) -> None:
    # EV-79: the publisher waits for it; no record is lost or out of order
    fill(registry, 600)
    rig = Rig(registry.store, broker)
    with following(rig):
        until(lambda: rig.position() > 0, 120)
        broker.stop()
        try:
            end = fill(registry, 50, start=600)
        finally:
            broker.start()
        until(lambda: rig.position() == end, 120)
    rig.check()


@pytest.mark.long
def test_a_broker_that_is_not_there_at_first(registry: Registry, broker: Kafka) -> None:
    fill(registry, 3)
    rig = Rig(registry.store, broker)
    broker.stop()
    try:
        with following(rig):
            until(lambda: bool(rig.interruptions), 120)
            broker.start()
            until(lambda: rig.position() == 9, 120)
    finally:
        if rig.position() != 9:
            broker.stop()
            broker.start()
    rig.check()


@pytest.mark.long
def test_it_stops_while_it_waits_for_a_broker(registry: Registry, broker: Kafka) -> None:
    fill(registry, 600)
    rig = Rig(registry.store, broker)
    try:
        with following(rig):
            until(lambda: rig.position() > 0, 120)
            broker.stop()
            fill(registry, 5, start=600)
    finally:
        broker.start()
    rig.publish()
    rig.check()


@pytest.mark.long
def test_a_record_that_is_too_large(registry: Registry, broker: Kafka) -> None:
    # The publisher does not skip it: all records before it are published and none after it, until the topic allows it.
    before = fill(registry, 20)
    large = registry.record(("/dirs/large", {"name": "x" * LARGEST}))
    fill(registry, 20, start=20)
    rig = Rig(registry.store, broker)
    with pytest.raises(RecordRefused) as refused:
        rig.publish()
    assert refused.value.record.position == large
    rig.settle()
    assert {position.position for position in rig.positions().values()} == {before}
    assert sum(map(len, rig.read(LOG).values())) == before
    with closing(KafkaAdminClient(bootstrap_servers=broker.own())) as admin:
        more = {"max.message.bytes": str(4 * LARGEST)}
        admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, f"{rig.prefix}.{name}", more) for name in (LOG, ENTITIES)]
        )
    rig.publish()
    rig.check()


# --- topics and log disagree -------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_database_that_was_restored_is_refused(registry: Registry, broker: Kafka) -> None:
    # EV-79: nothing is published to topics that are further than the log, or that have another history
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    restore, history = backup(registry.store), deepcopy(registry.history)
    end = fill(registry, 5, start=5)
    rig.publish()
    before = {topic: rig.read(topic) for topic in (LOG, EVENTS)}
    restore()
    with pytest.raises(TopicsDiverged, match=rf"is at position {end}, further than the log, which ends at 15"):
        rig.publish()
    registry.history = history
    fill(registry, 7, start=50)
    with pytest.raises(
        TopicsDiverged, match=rf"at position {end} the topic {rig.prefix}\.log holds another interaction"
    ):
        rig.publish()
    assert {topic: rig.read(topic) for topic in (LOG, EVENTS)} == before


@pytest.mark.long
def test_a_database_that_was_restored_to_what_is_published(registry: Registry, broker: Kafka) -> None:
    # The log is the same, and the position is stored in the topics
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    restore = backup(registry.store)
    restore()
    rig.publish()
    rig.check()


@pytest.mark.long
def test_another_registry(registry: Registry, broker: Kafka, tmp_path: Path) -> None:
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    with Registry(f"sqlite:///{tmp_path / 'other.db'}") as other:
        fill(other, 9)
        with pytest.raises(TopicsDiverged, match="holds another interaction than the log"):
            Rig(other.store, broker, rig.prefix).publish()


@pytest.mark.long
@pytest.mark.parametrize("deleted", [(LOG,), (EVENTS,), (LOG, EVENTS), (*TOPICS, POSITIONS)], ids=str)
def test_topics_that_were_deleted(registry: Registry, broker: Kafka, deleted: tuple[str, ...]) -> None:
    # They are filled from the beginning; the other topics get no duplicates.
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    rig.settle()  # otherwise the broker may write the end of the transaction to the new topic
    for topic in deleted:
        broker.delete(f"{rig.prefix}.{topic}")
    rig.publish()
    rig.check()


@pytest.mark.long
def test_killed_publishers_can_recreate_topics(
    registry: Registry, broker: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The position of a new topic is stored at once, so it does not look like a topic that lost its records.
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    rig.settle()
    broker.delete(f"{rig.prefix}.{LOG}")

    def fail(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(WindowReader, "next_window", fail)  # the topics exist, and are empty
        rig.publish()
    with closing(Producer(rig.cluster, rig.prefix, lambda: False)) as producer:  # a part of a window, not committed
        producer.begin()
        beginning = {name: each._replace(number=0, position=0) for name, each in rig.positions().items()}
        producer.send(rig.windows.next_window(beginning).records[:3])
    rig.publish()
    rig.check()


@pytest.mark.long
def test_records_that_were_lost(registry: Registry, broker: Kafka) -> None:
    # EV-79: lost records are an error, because readers would wait for their numbers for ever
    fill(registry, 5)
    rig = Rig(registry.store, broker, topics=(LOG,))
    rig.publish()
    rig.settle()
    broker.delete(f"{rig.prefix}.{LOG}")
    broker.make(f"{rig.prefix}.{LOG}", PARTITIONS)
    with closing(KafkaProducer(bootstrap_servers=broker.own())) as producer:
        producer.send(f"{rig.prefix}.{LOG}", b"other", partition=0).get(60)
    with pytest.raises(TopicsDiverged, match=r"partition [0-2] of the topic .* but its last published record has"):
        rig.publish()


@pytest.mark.long
def test_a_topic_of_others(registry: Registry, broker: Kafka) -> None:
    # Its position in the log is unknown
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    broker.make(f"{rig.prefix}.{EVENTS}", 1)
    with closing(KafkaProducer(bootstrap_servers=broker.own())) as producer:
        producer.send(f"{rig.prefix}.{EVENTS}", b"other").get(60)
    with pytest.raises(TopicsDiverged, match=rf"the topic {rig.prefix}.events has records, but {rig.prefix}.positions"):
        rig.publish()


@pytest.mark.long
def test_keys_of_another_form(registry: Registry, broker: Kafka) -> None:
    # With other keys, the records of an entity would be in two partitions
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    before = rig.read(ENTITIES)
    other = Rig(registry.store, broker, rig.prefix, schemas=False)
    with pytest.raises(TopicsDiverged, match="use --schemas or --no-schemas as before, or another prefix"):
        other.publish()
    assert rig.read(ENTITIES) == before
