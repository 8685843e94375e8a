"""What a test of publishing needs: publishers of a store, and topics read as a consumer reads them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final, NamedTuple

from sqlalchemy import MetaData, insert, select

from annals.commands.store.log import Store
from annals.projections.events.xregistry_events import XRegistryEvents
from annals.projections.kafka.cluster import KafkaCluster
from annals.projections.kafka.progress import PublishingProgress
from annals.projections.kafka.publisher import Publisher
from annals.projections.kafka.records import EVENTS, LOG, PublishedCounts, RecordBuilder
from tests.support.brokers.kafka import Kafka, next_records, topic_consumer
from tests.support.registries.recorded import Registry
from tests.support.serving import ROOT

GUIDE: Final = (ROOT / "docs" / "guides" / "publishing.md").read_text()
PARTITIONS: Final = 3
_NUMBERS: Final = itertools.count(1)


class Read(NamedTuple):
    """A record as consumers see it. number: in its topic."""

    number: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


@dataclass
class Rig:
    """A store, and topics of its own on a broker. told: what the publisher said of interruptions."""

    store: Store
    broker: Kafka
    prefix: str = field(default_factory=lambda: f"p{next(_NUMBERS)}")
    contentmode: str = "structured"
    told: list[str] = field(default_factory=list)

    @property
    def progress(self) -> PublishingProgress:
        return PublishingProgress(self.store, RecordBuilder(XRegistryEvents(), self.contentmode), self.prefix)

    @property
    def cluster(self) -> KafkaCluster:
        return KafkaCluster(f"kafka://{self.broker.own()}")

    def publisher(self) -> Publisher:
        return Publisher(self.progress, self.cluster, self.prefix, partitions=PARTITIONS, report_line=self.told.append)

    def publish(self) -> PublishedCounts:
        """Publishes all that there is."""
        return self.publisher().publish_once(Event())

    def read(self, topic: str) -> dict[int, list[Read]]:
        """All that a topic holds, by partition."""
        found: dict[int, list[Read]] = {}
        with topic_consumer(self.broker.own(), f"{self.prefix}.{topic}") as consumer:
            count = sum(consumer.end_offsets(list(consumer.assignment())).values())
            records = next_records(consumer, count, 60)
        assert len(records) == count
        for record in records:
            made = Read(int(dict(record.headers)["annals_number"]), record.key, record.value, record.headers)
            found.setdefault(record.partition, []).append(made)
        return found

    def proven(self) -> dict[str, int]:
        """How many records each topic holds beside those that are needed, once readers are shown to lose nothing.

        Each partition is in order and jumps over nothing, what is there twice is the same, and no number is missing.
        """
        place = self.progress.published_counts()
        return {LOG: _proven(self.read(LOG), place.log), EVENTS: _proven(self.read(EVENTS), place.events)}


def _proven(partitions: Mapping[int, list[Read]], count: int) -> int:
    for records in partitions.values():
        firsts = list(dict.fromkeys(each.number for each in records))
        assert firsts == sorted(firsts)
    every = [each for records in partitions.values() for each in records]
    once = {each.number: each for each in every}
    assert all(once[each.number] == each for each in every)
    assert sorted(once) == list(range(1, count + 1))
    return len(every) - count


def reader() -> Callable[..., Iterator[tuple[int, Any]]]:
    """The function `in_order` of the guide."""
    (text,) = re.findall(r"```python\n(def in_order.*?)```\n", GUIDE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)
    found: Callable[..., Iterator[tuple[int, Any]]] = names["in_order"]
    return found


def forgotten(rig: Rig, registry: Registry, interactions: int, more: int) -> tuple[PublishedCounts, PublishedCounts]:
    """Publishes a log, and what came to it twice, as after a crash between acknowledgement and remembering.

    Gives the places of both ends.
    """
    fill(registry, interactions)
    before = rig.publish()
    fill(registry, more, start=interactions)
    after = rig.publish()
    rig.progress.save(before)
    assert rig.publish() == after
    return before, after


def fill(registry: Registry, interactions: int, start: int = 0) -> int:
    """Records interactions over many Groups, one of them spelled with capitals; the position of the last event."""
    position = 0
    for number in range(start, start + interactions):
        group = f"/dirs/D{number % 17}"
        files = {f"{group}/files/f{each}": {"name": f"{number} ü", "number": number} for each in range(3)}
        position = registry.record(*files.items(), refresh=number % 5 == 4)
    return position


def backup(store: Store) -> Callable[[], None]:
    """Keeps all rows of a store; the result puts them in the place of those that are there then."""
    metadata = MetaData()
    metadata.reflect(store.engine)
    with store.engine.begin() as connection:
        kept = {table: connection.execute(select(table)).all() for table in metadata.sorted_tables}

    def restore() -> None:
        with store.engine.begin() as connection:
            for table, rows in kept.items():
                connection.execute(table.delete())
                if rows:
                    connection.execute(insert(table), [row._asdict() for row in rows])

    return restore


def merged(partitions: Iterable[Iterable[Read]], choose: Callable[[int], int]) -> Iterator[Read]:
    """The records of partitions as a consumer may get them: each partition in order, which one next is anybody's guess.

    choose: one of so many.
    """
    left = [list(records) for records in partitions]
    while left := [records for records in left if records]:
        yield left[choose(len(left))].pop(0)
