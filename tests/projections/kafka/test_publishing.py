"""The log and its events on the topics of a real broker, read by consumers of three partitions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import text

from annals.api.settings.client_settings import KafkaSettings
from annals.projections.database import drivers
from annals.projections.kafka.records import EVENTS, LOG, PublishedCounts
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import SCHEMA_VERSION, table_rows
from tests.projections.kafka.publishing_rig import GUIDE, PARTITIONS, Rig, fill, forgotten, merged, reader
from tests.support.brokers.kafka import Kafka, as_cloudevent, next_records, topic_consumer
from tests.support.event_messages import event_messages
from tests.support.registries.recorded import Registry

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


def test_what_is_published(registry: Registry, broker: Kafka) -> None:  # EV-79: all that is recorded, as it is
    fill(registry, 20)
    rig = Rig(registry.store, broker)
    place = rig.publish()
    with registry.store.engine.begin() as connection:
        log = Log(drivers.database_of(connection))
        every = log.interactions(0, 99)
        stored = [row for each in every for row in table_rows(each, log.events(each.first, each.last))]
    values = {each.number: json.loads(each.value) for records in rig.read(LOG).values() for each in records}
    hashes = ("chain", "statehash")
    assert [values[number] for number in sorted(values)] == [
        row._asdict() | {name: b64encode(getattr(row, name)).decode() for name in hashes} for row in stored
    ]
    assert place == PublishedCounts(len(stored), sum(1 for row in stored if row.topic != "EntityRefreshed:1"))
    assert SCHEMA_VERSION == 2  # what the guide says that the header tells


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_events_read_with_a_library_of_others(registry: Registry, broker: Kafka, contentmode: str) -> None:
    # § 3 of the Kafka binding, EV-77: the same events as in the feed, in their order
    fill(registry, 40)
    rig = Rig(registry.store, broker, contentmode=contentmode)
    place = rig.publish()
    with topic_consumer(broker.own(), f"{rig.prefix}.events") as consumer:
        found = [as_cloudevent(each) for _, each in reader()(next_records(consumer, place.events))]
    expected = [message.cloudevent() for message in event_messages(registry.url)]
    assert [(each.event.get_attributes(), each.event.get_data()) for each in found] == [
        (each.get_attributes(), each.get_data()) for each in expected
    ]
    # Without data there is nothing that a binary record could hold.
    assert {each.mode for each in found if each.event.get_data() is not None} == {contentmode}


def test_the_total_order_of_three_partitions(registry: Registry, broker: Kafka) -> None:
    # EV-77, EV-78: whichever partition is ahead, what the guide's reader gives is the log from its beginning, each once
    rig = Rig(registry.store, broker)
    _, place = forgotten(rig, registry, 60, 10)
    for topic, count in ((LOG, place.log), (EVENTS, place.events)):
        partitions = rig.read(topic)
        assert len(partitions) == PARTITIONS
        for seed in range(20):
            found = reader()(merged(partitions.values(), Random(seed).randrange))
            assert [(number, each.number) for number, each in found] == [(n, n) for n in range(1, count + 1)]
        for lagging in partitions:  # while a partition says nothing, no record passes one of its own
            others = merged([records for part, records in partitions.items() if part != lagging], lambda count: 0)
            assert [number for number, _ in reader()(others)] == list(range(1, partitions[lagging][0].number))


def test_everything_of_a_subject_is_in_one_partition(registry: Registry, broker: Kafka) -> None:
    # EV-78: its order is never inverted, also where a Group comes back in another case
    for group in ("/dirs/Again", "/dirs/again"):
        registry.record(("/", {}), (group, {}), (f"{group}/files/f", {}))
        registry.record((f"{group}/files/f", None), (group, None))
    rig = Rig(registry.store, broker)
    rig.publish()
    for topic in (LOG, EVENTS):
        of_group = {part for part, records in rig.read(topic).items() for each in records if each.key == b"/dirs/again"}
        keys = {each.key for records in rig.read(topic).values() for each in records}
        assert (len(of_group), keys - {b"/"}) == (1, {b"/dirs/again"})


def test_it_goes_on_where_it_was(registry: Registry, broker: Kafka) -> None:
    rig = Rig(registry.store, broker)
    assert rig.publish() == PublishedCounts()
    for start in (0, 10, 20):
        end = fill(registry, 10, start)
        assert rig.publish().log == end
    assert rig.proven() == {LOG: 0, EVENTS: 0}


def test_windows_that_end_inside_of_interactions(registry: Registry, broker: Kafka) -> None:
    # EV-79: a large interaction is published in parts, and whole in the end
    registry.record(*((f"/dirs/d{number}", {}) for number in range(1200)))
    fill(registry, 3)
    rig = Rig(registry.store, broker)
    assert len(rig.progress.next_window(PublishedCounts()).records) == 1000
    rig.publish()
    assert rig.proven() == {LOG: 0, EVENTS: 0}


def test_the_places_in_the_database(registry: Registry, broker: Kafka) -> None:
    fill(registry, 5)
    rig = Rig(registry.store, broker)
    place = rig.publish()
    with registry.store.engine.connect() as connection:
        rows = connection.execute(
            text("SELECT name, position FROM projection WHERE name LIKE 'kafka:%' ORDER BY name")
        ).all()
    assert [tuple(row) for row in rows] == [
        (f"kafka:{rig.prefix}.events", place.events),
        (f"kafka:{rig.prefix}.log", place.log),
    ]


def test_the_program_of_the_guide(registry: Registry, broker: Kafka, tmp_path: Path) -> None:
    fill(registry, 4)
    rig = Rig(registry.store, broker)
    place = rig.publish()
    program = tmp_path / "read.py"
    blocks = re.findall(r"```python\n(.*?)```\n", GUIDE, re.DOTALL)
    text = "\n".join(blocks).replace("127.0.0.1:9092", broker.own()).replace("registry.events", f"{rig.prefix}.events")
    program.write_text(text)
    with subprocess.Popen([sys.executable, "-W", "ignore", program], stdout=subprocess.PIPE, text=True) as reading:
        try:
            assert reading.stdout is not None
            lines = [reading.stdout.readline().split(" ", 1) for _ in range(place.events)]
        finally:
            reading.kill()
    expected = [json.loads(message.json()) for message in event_messages(registry.url)]
    assert [(int(number), json.loads(value)) for number, value in lines] == list(enumerate(expected, 1))


@pytest.mark.parametrize("name", KafkaSettings.model_fields)
def test_each_setting_is_in_the_guide(name: str) -> None:
    field = KafkaSettings.model_fields[name]
    assert f"| `ANNALS_{name.upper()}` | | {field.description} |" in GUIDE
    assert field.default is None
