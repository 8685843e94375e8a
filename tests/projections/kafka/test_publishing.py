"""The log, its events and its entities on the topics of a real broker, read by consumers of three partitions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from kafka import KafkaAdminClient
from kafka.admin import NewPartitions
from sqlalchemy import MetaData, select

from annals.api.settings.client_settings import KafkaSettings
from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.projections.database import drivers
from annals.projections.kafka import windows
from annals.projections.kafka.entity_topic import ENTITIES
from annals.projections.kafka.event_topic import EVENT_TOPICS, EVENTS
from annals.projections.kafka.log_topic import LOG
from annals.projections.kafka.topics import TOPICS
from annals.projections.kafka.windows import WINDOW_EVENTS
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import SCHEMA_VERSION, table_rows
from tests.api.compat.test_feeds import fill_registry
from tests.projections.kafka.publishing_rig import GUIDE, PARTITIONS, Rig, fill, merged, reader
from tests.support.brokers.kafka import Kafka, all_records, as_cloudevent
from tests.support.event_messages import event_messages
from tests.support.registries.in_process import create, serving
from tests.support.registries.recorded import Registry

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


def test_what_is_published(registry: Registry, broker: Kafka) -> None:  # EV-79: the whole log, unchanged
    fill(registry, 20)
    rig = Rig(registry.store, broker)
    counts = rig.publish()
    rig.settle()
    with registry.store.engine.begin() as connection:
        log = Log(drivers.database_of(connection))
        interactions = log.interactions(0, 99)
        stored = [row for each in interactions for row in table_rows(each, log.events(each.first, each.last))]
    values = {each.number: json.loads(each.value or b"") for records in rig.read(LOG).values() for each in records}
    hashes = ("chain", "statehash")
    assert [values[number] for number in sorted(values)] == [
        row._asdict() | {name: b64encode(getattr(row, name)).decode() for name in hashes} for row in stored
    ]
    events = sum(1 for row in stored if row.topic != "EntityRefreshed:1")
    assert counts == dict.fromkeys(TOPICS, 0) | {LOG: len(stored), EVENTS: events, ENTITIES: len(stored)}
    assert SCHEMA_VERSION == 3  # the header's value in the guide
    rig.check()


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_events_read_with_a_library_of_others(registry: Registry, broker: Kafka, contentmode: str) -> None:
    # § 3 of the Kafka binding, EV-77: the same events as in the feed, in the same order
    fill(registry, 40)
    rig = Rig(registry.store, broker, contentmode=contentmode, topics=(EVENTS,))
    rig.publish()
    rig.settle()
    records = all_records(broker.own(), f"{rig.prefix}.events")
    found = [as_cloudevent(each) for _, each in reader()(records)]
    expected = [message.cloudevent() for message in event_messages(registry.url)]
    assert [(each.event.get_attributes(), each.event.get_data()) for each in found] == [
        (each.get_attributes(), each.get_data()) for each in expected
    ]
    # An event without data is structured in both modes, because a binary record would have no value.
    assert {each.mode for each in found if each.event.get_data() is not None} == {contentmode}


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_every_event_family(store_url: str, broker: Kafka, contentmode: str) -> None:
    # SUB-111: each topic has exactly the events of the feed of its family
    create(store_url, default_source())
    with serving(store_url) as api, closing(Store(store_url)) as store:
        fill_registry(api)
        rig = Rig(store, broker, contentmode=contentmode, topics=tuple(EVENT_TOPICS.values()))
        rig.publish()
        rig.check()
        for family, topic in EVENT_TOPICS.items():
            records = all_records(broker.own(), f"{rig.prefix}.{topic}")
            found = [as_cloudevent(each) for _, each in reader()(records)]
            feed = api.get(f"/-/events?family={family}")
            assert [JSONFormat().write(each.event) for each in found] == [
                JSONFormat().write(JSONFormat().read(CloudEvent, json.dumps(each))) for each in feed
            ]
            assert found


def test_the_total_order_of_three_partitions(registry: Registry, broker: Kafka) -> None:
    # EV-77, EV-78: whichever partition is ahead, the guide's reader returns records in the order of the log
    fill(registry, 60)
    rig = Rig(registry.store, broker)
    counts = rig.publish()
    rig.settle()
    for topic in (LOG, EVENTS, ENTITIES):
        partitions = rig.read(topic)
        assert len(partitions) == PARTITIONS
        for seed in range(20):
            found = reader()(merged(partitions.values(), Random(seed).randrange))
            assert [(number, each.number) for number, each in found] == [(n, n) for n in range(1, counts[topic] + 1)]
        for lagging in partitions:  # while a partition lags behind, no record overtakes its first one
            others = merged([records for part, records in partitions.items() if part != lagging], lambda count: 0)
            assert [number for number, _ in reader()(others)] == list(range(1, partitions[lagging][0].number))


def test_everything_of_a_subject_is_in_one_partition(registry: Registry, broker: Kafka) -> None:
    # EV-78: its records stay in order, even if a Group is created again with its id in another case
    for group in ("/dirs/Again", "/dirs/again"):
        registry.record(("/", {}), (group, {}), (f"{group}/files/f", {}))
        registry.record((f"{group}/files/f", None), (group, None))
    rig = Rig(registry.store, broker)
    rig.publish()
    rig.settle()
    for topic in (LOG, EVENTS):
        of_group = {part for part, records in rig.read(topic).items() for each in records if each.key == b"/dirs/again"}
        keys = {each.key for records in rig.read(topic).values() for each in records}
        assert (len(of_group), keys - {b"/"}) == (1, {b"/dirs/again"})


def test_it_goes_on_where_it_was(registry: Registry, broker: Kafka) -> None:
    rig = Rig(registry.store, broker)
    assert rig.publish() == dict.fromkeys(TOPICS, 0)
    for start in (0, 10, 20):
        end = fill(registry, 10, start)
        assert rig.publish()[LOG] == end
    rig.check()


def test_a_topic_that_is_added_later(registry: Registry, broker: Kafka) -> None:
    # It starts at the beginning of the log, while the others wait; a topic that is left out keeps its position
    fill(registry, 10)
    first = Rig(registry.store, broker, topics=(LOG,))
    first.publish()
    end = fill(registry, 10, start=10)
    Rig(registry.store, broker, first.prefix, topics=(EVENTS,)).publish()
    rig = Rig(registry.store, broker, first.prefix)
    assert rig.positions()[LOG].number < end
    rig.publish()
    rig.check()


def test_windows_that_end_inside_of_interactions(
    registry: Registry, broker: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    # EV-79: a large interaction is published in parts, and completely
    registry.record(*((f"/dirs/d{number}", {}) for number in range(WINDOW_EVENTS + 100)))
    fill(registry, 3)
    rig = Rig(registry.store, broker)
    rig.publish()
    rig.check()


def test_windows_of_large_records(registry: Registry, broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # Memory is bounded: a window ends when its records are too large, in all topics at the same event
    monkeypatch.setattr(windows, "WINDOW_BYTES", 5000)
    fill(registry, 20)
    rig = Rig(registry.store, broker)
    rig.publish()
    rig.check()
    reader = rig.windows
    positions = {name: each._replace(number=0, position=0) for name, each in rig.positions().items()}
    assert len(reader.next_window(positions).records) < 20


def test_partitions_that_are_added(registry: Registry, broker: Kafka) -> None:
    # Records of an entity would change partitions; so the new partitions stay empty, and the publisher reports that
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    rig.publish()
    with closing(KafkaAdminClient(bootstrap_servers=broker.own())) as admin:
        admin.create_partitions({f"{rig.prefix}.log": NewPartitions(PARTITIONS + 4)})
    fill(registry, 30, start=5)
    rig.publish()
    assert rig.interruptions == [
        f"the topic {rig.prefix}.log has 7 partitions; the first 3 are in use, as before, so that records of an entity"
        " stay in order"
    ]
    rig.check()


def test_the_database_is_only_read(registry: Registry, broker: Kafka) -> None:
    # The position is stored on the brokers, in the transaction of the records; so a standby server can publish, too
    fill(registry, 5)

    def rows() -> list[object]:
        metadata = MetaData()
        metadata.reflect(registry.store.engine)
        with registry.store.engine.connect() as connection:
            return [connection.execute(select(table)).all() for table in metadata.sorted_tables]

    before = rows()
    Rig(registry.store, broker).publish()
    assert rows() == before


def test_the_program_of_the_guide(registry: Registry, broker: Kafka, tmp_path: Path) -> None:
    fill(registry, 4)
    rig = Rig(registry.store, broker)
    count = rig.publish()[EVENTS]
    program = tmp_path / "read.py"
    blocks = re.findall(r"```python\n(.*?)```\n", GUIDE, re.DOTALL)
    text = "\n".join(blocks).replace("127.0.0.1:9092", broker.own()).replace("registry.events", f"{rig.prefix}.events")
    program.write_text(text)
    with subprocess.Popen([sys.executable, "-W", "ignore", program], stdout=subprocess.PIPE, text=True) as reading:
        try:
            assert reading.stdout is not None
            lines = [reading.stdout.readline().split(" ", 1) for _ in range(count)]
        finally:
            reading.kill()
    expected = [json.loads(message.json()) for message in event_messages(registry.url)]
    assert [(int(number), json.loads(value)) for number, value in lines] == list(enumerate(expected, 1))


@pytest.mark.parametrize("name", KafkaSettings.model_fields)
def test_each_setting_is_in_the_guide(name: str) -> None:
    field = KafkaSettings.model_fields[name]
    assert f"| `ANNALS_{name.upper()}` | | {field.description} |" in GUIDE
    assert field.default is None
