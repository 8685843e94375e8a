"""What a publisher does when it, its brokers or its database are interrupted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from threading import Event

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from annals.projections.kafka.cluster import TopicContents
from annals.projections.kafka.log_agreement import TopicsDiverged, find_start
from annals.projections.kafka.producer import Producer, RecordFailed
from annals.projections.kafka.records import EVENTS, LOG, PublishedCounts
from tests.projections.kafka.publishing_rig import PARTITIONS, Rig, backup, fill, forgotten
from tests.support.brokers.kafka import LARGEST, Kafka
from tests.support.polling import until
from tests.support.registries.recorded import Registry
from tests.support.serving import environment

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.long, pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


def written(rig: Rig) -> int:
    """Records on the log's topic so far."""
    return rig.cluster.topic_contents(f"{rig.prefix}.log").records


def growing(rig: Rig) -> Callable[[], bool]:
    """Whether more records are there than now."""
    before = written(rig)
    return lambda: written(rig) > before


@contextmanager
def child(rig: Rig, url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A publisher that follows the log in a process of its own; killed at the end."""
    command = [sys.executable, "-m", "annals", "publish", "--kafka", rig.broker.own(), "--prefix", rig.prefix]
    with subprocess.Popen(command, cwd=folder, env=environment(ANNALS_DATABASE=url)) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def following(rig: Rig) -> Iterator[None]:
    """A publisher that follows the log in a thread; what ends it too early is raised at the end."""
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rig.publisher().run, stop)
        try:
            yield
        finally:
            stop.set()
        running.result(60)


def test_publish_resumes_after_kill(registry: Registry, broker: Kafka, tmp_path: Path) -> None:
    # EV-79: nothing is lost, what is there twice has the same number and is the same
    end = fill(registry, 1500)
    rig = Rig(registry.store, broker)
    rig.cluster.create_topics([f"{rig.prefix}.{topic}" for topic in (LOG, EVENTS)], PARTITIONS)
    killed: list[int] = []
    while written(rig) < end and len(killed) < 3:
        more = growing(rig)
        with child(rig, registry.url, tmp_path):
            until(more, 120)
        killed.append(written(rig))
    assert killed[0] < end  # it was on its way
    assert rig.publish().log == end
    rig.proven()


def test_records_published_before_a_crash_are_recognized(registry: Registry, broker: Kafka) -> None:
    # EV-79: the window between acknowledgement and remembering is published again, and recognised
    rig = Rig(registry.store, broker)
    before, after = forgotten(rig, registry, 10, 10)
    assert rig.proven() == {LOG: after.log - before.log, EVENTS: after.events - before.events}


def test_two_publishers_at_once(registry: Registry, broker: Kafka) -> None:
    end = fill(registry, 300)
    rig = Rig(registry.store, broker)
    with following(rig), following(rig):
        until(lambda: rig.progress.published_counts().log == end, 120)
    rig.publish()
    rig.proven()


def test_another_publisher_goes_on_while_one_starts(registry: Registry, broker: Kafka) -> None:
    # What the other sends after this one has looked at the topics is not taken for lost
    end = fill(registry, 3)
    rig = Rig(registry.store, broker)
    rig.publish()

    def look() -> dict[str, TopicContents]:
        held = {topic: rig.cluster.topic_contents(f"{rig.prefix}.{topic}") for topic in (LOG, EVENTS)}
        fill(registry, 3, start=3)
        rig.publish()
        return held

    assert find_start(rig.progress, look).log == end
    rig.proven()


def test_a_broker_that_goes_away_and_comes_back(registry: Registry, broker: Kafka) -> None:
    # EV-79: it is waited for, nothing is lost and nothing overtakes
    fill(registry, 600)
    rig = Rig(registry.store, broker)
    with following(rig):
        until(lambda: rig.progress.published_counts().log > 0, 120)
        broker.stop()
        try:
            end = fill(registry, 50, start=600)
        finally:
            broker.start()
        until(lambda: rig.progress.published_counts().log == end, 120)
    rig.proven()


def test_a_broker_that_is_not_there_at_first(registry: Registry, broker: Kafka) -> None:
    fill(registry, 3)
    rig = Rig(registry.store, broker)
    broker.stop()
    try:
        with following(rig):
            until(lambda: bool(rig.told), 120)
            broker.start()
            until(lambda: rig.progress.published_counts().log == 9, 120)
    finally:
        if rig.progress.published_counts().log != 9:
            broker.stop()
            broker.start()
    rig.proven()


def test_it_stops_while_it_waits_for_a_broker(registry: Registry, broker: Kafka) -> None:
    fill(registry, 600)
    rig = Rig(registry.store, broker)
    try:
        with following(rig):
            until(lambda: rig.progress.published_counts().log > 0, 120)
            broker.stop()
            fill(registry, 5, start=600)
    finally:
        broker.start()
    rig.publish()
    rig.proven()


def test_a_record_that_is_too_large(registry: Registry, broker: Kafka) -> None:
    # It is not jumped over: all before it is there, nothing behind it in its partition, and it goes in once it may.
    fill(registry, 20)
    large = registry.record(("/dirs/large", {"name": "x" * LARGEST}))
    fill(registry, 20, start=20)
    rig = Rig(registry.store, broker)
    with pytest.raises(RecordFailed) as failed:
        rig.publish()
    assert failed.value.record.position == large
    assert rig.progress.published_counts() == PublishedCounts()
    key = b"/dirs/large"
    assert all(each.key != key for records in rig.read(LOG).values() for each in records)
    with closing(KafkaAdminClient(bootstrap_servers=broker.own())) as admin:
        more = {"max.message.bytes": str(4 * LARGEST)}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, f"{rig.prefix}.log", more)])
    rig.publish()
    rig.proven()


# --- the database is another one ---------------------------------------------------------------------------------


def test_a_database_that_was_restored_is_refused(registry: Registry, broker: Kafka) -> None:
    # EV-79: topics that are further than the log, or hold what it does not, get no second past
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


def test_an_older_place_in_a_database_that_was_restored(registry: Registry, broker: Kafka) -> None:
    # The log is what it was, so what is published again is recognised.
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    fill(registry, 5, start=5)
    restore = backup(registry.store)
    place = rig.publish()
    restore()
    assert rig.progress.published_counts().log == 15
    assert rig.publish() == place
    assert rig.proven() == {LOG: 15, EVENTS: 15}


def test_another_registry(registry: Registry, broker: Kafka, tmp_path: Path) -> None:
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    with Registry(f"sqlite:///{tmp_path / 'other.db'}") as other:
        fill(other, 9)
        with pytest.raises(TopicsDiverged, match="holds another interaction than the log"):
            Rig(other.store, broker, rig.prefix).publish()


@pytest.mark.parametrize("deleted", [(LOG,), (EVENTS,), (LOG, EVENTS)], ids=str)
def test_topics_that_were_deleted(registry: Registry, broker: Kafka, deleted: tuple[str, ...]) -> None:
    # They are filled from the beginning; a topic that stayed has all of it a second time.
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    place = rig.publish()
    for topic in deleted:
        broker.delete(f"{rig.prefix}.{topic}")
    assert rig.publish() == place
    twice = dict(zip((LOG, EVENTS), place, strict=True))
    assert rig.proven() == {topic: 0 if topic in deleted else twice[topic] for topic in (LOG, EVENTS)}


def test_killed_publishers_can_recreate_topics(registry: Registry, broker: Kafka) -> None:
    # What it leaves is a beginning, and no topic that has lost its records.
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    place = rig.publish()
    names = {topic: f"{rig.prefix}.{topic}" for topic in (LOG, EVENTS)}
    for name in names.values():
        broker.delete(name)
    rig.cluster.create_topics([*names.values()], PARTITIONS)
    begun = find_start(rig.progress, lambda: {topic: rig.cluster.topic_contents(name) for topic, name in names.items()})
    with closing(Producer(rig.cluster, rig.prefix, lambda: False)) as producer:
        for record in rig.progress.next_window(begun).records[:3]:
            producer.send(record)
        producer.flush()
    assert rig.publish() == place
    assert rig.proven() == {LOG: 3, EVENTS: 0}


def test_records_that_were_lost(registry: Registry, broker: Kafka) -> None:
    # EV-79: what was acknowledged has to be there, else a reader would wait for its numbers for ever
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    end = fill(registry, 5, start=5)
    rig.progress.save(PublishedCounts(end, 30))
    with pytest.raises(TopicsDiverged, match=rf"ends at number 15, but {end} were acknowledged"):
        rig.publish()
