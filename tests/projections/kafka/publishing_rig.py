"""Support for tests of publishing: publishers of a store, and topics as a consumer reads them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final, NamedTuple

from kafka import errors
from sqlalchemy import MetaData, insert, select

from annals.commands.store.log import Store
from annals.projections.compat.families import all_event_families
from annals.projections.database import drivers
from annals.projections.events import feed
from annals.projections.kafka.cluster import KafkaCluster
from annals.projections.kafka.producer import Producer
from annals.projections.kafka.publisher import Publisher
from annals.projections.kafka.records import TopicContent, WindowPart
from annals.projections.kafka.topic_position import POSITIONS, TopicPosition, decode_positions
from annals.projections.kafka.topics import TOPICS, topic_contents
from annals.projections.kafka.windows import WindowReader, numbered_records
from annals.projections.log.reader import Log
from tests.support.brokers.kafka import Kafka, all_records
from tests.support.registries.recorded import Registry
from tests.support.serving import ROOT

GUIDE: Final = (ROOT / "docs" / "guides" / "publishing.md").read_text()
PARTITIONS: Final = 3
_NUMBERS: Final = itertools.count(1)


class Read(NamedTuple):
    """A record as consumers see it. number: in its topic."""

    number: int
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]


@dataclass
class Rig:
    """A store, and topics of its own on a broker. interruptions: the lines that the publisher reported."""

    store: Store
    broker: Kafka
    prefix: str = field(default_factory=lambda: f"p{next(_NUMBERS)}")
    contentmode: str = "structured"
    schemas: bool = True
    topics: tuple[str, ...] = TOPICS
    interruptions: list[str] = field(default_factory=list)

    @property
    def contents(self) -> list[TopicContent]:
        return topic_contents(
            self.topics, self.prefix, all_event_families(), contentmode=self.contentmode, schemas=self.schemas
        )

    @property
    def windows(self) -> WindowReader:
        return WindowReader(self.store, self.contents)

    @property
    def cluster(self) -> KafkaCluster:
        return KafkaCluster(f"kafka://{self.broker.own()}")

    def publisher(self) -> Publisher:
        return Publisher(
            self.windows, self.cluster, self.prefix, partitions=PARTITIONS, report_line=self.interruptions.append
        )

    def publish(self) -> dict[str, int]:
        """Publishes the whole log; returns the number of records in each topic."""
        return {topic: position.number for topic, position in self.publisher().publish_once(Event()).items()}

    def positions(self) -> dict[str, TopicPosition]:
        """How far the topics are published; empty while they do not exist."""
        try:
            value = self.cluster.last_value(f"{self.prefix}.{POSITIONS}")
        except errors.KafkaError:
            return {}
        return {} if value is None else decode_positions(value)

    def position(self) -> int:
        """The position in the log up to which all topics are published."""
        return min((position.position for position in self.positions().values()), default=0)

    def read(self, topic: str) -> dict[int, list[Read]]:
        """All records of a topic, by partition."""
        found: dict[int, list[Read]] = {}
        for record in all_records(self.broker.own(), f"{self.prefix}.{topic}"):
            made = Read(int(dict(record.headers)["annals_number"]), record.key, record.value, record.headers)
            found.setdefault(record.partition, []).append(made)
        return found

    def settle(self) -> None:
        """Waits until consumers see all committed records, shortly after the commit. Ends other publishers."""
        Producer(self.cluster, self.prefix, lambda: False).close()

    def check(self) -> None:
        """Checks that topics have each record of the log once, and those of an entity in one partition and in order."""
        self.settle()
        contents, positions = self.contents, self.positions()
        with self.store.engine.begin() as connection:
            log = Log(drivers.database_of(connection))
            end = log.head().last
            parts = [WindowPart(each, list(rows)) for each, rows in feed.interactions(lambda: log, 0, end)]
            expected = {
                topic.name: list(
                    numbered_records(topic, positions[topic.name]._replace(number=0, position=0), parts, log)
                )
                for topic in contents
            }
        for topic, records in expected.items():
            by_partition: dict[int, list[Read]] = {}
            for number, record in enumerate(records, 1):
                made = Read(number, record.key, record.value, record.headers)
                by_partition.setdefault(record.partition, []).append(made)
            assert self.read(topic) == by_partition
            assert (positions[topic].number, positions[topic].position) == (len(records), end)


def reader() -> Callable[..., Iterator[tuple[int, Any]]]:
    """The function `in_order` of the guide."""
    (text,) = re.findall(r"```python\n(def in_order.*?)```\n", GUIDE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)
    found: Callable[..., Iterator[tuple[int, Any]]] = names["in_order"]
    return found


def fill(registry: Registry, interactions: int, start: int = 0) -> int:
    """Records interactions in 17 Groups, whose ids have capitals; returns the position of the last event."""
    position = 0
    for number in range(start, start + interactions):
        group = f"/dirs/D{number % 17}"
        files = {f"{group}/files/f{each}": {"name": f"{number} ü", "number": number} for each in range(3)}
        position = registry.record(*files.items(), refresh=number % 5 == 4)
    return position


def backup(store: Store) -> Callable[[], None]:
    """Copies all rows of a store; returns a function that restores them in place of the rows that exist then.

    After that, the process knows nothing of the log, as one that starts then.
    """
    metadata = MetaData()
    metadata.reflect(store.engine)
    with store.engine.begin() as connection:
        rows_by_table = {table: connection.execute(select(table)).all() for table in metadata.sorted_tables}

    def restore() -> None:
        with store.engine.begin() as connection:
            for table, rows in rows_by_table.items():
                connection.execute(table.delete())
                if rows:
                    connection.execute(insert(table), [row._asdict() for row in rows])
        store.close()

    return restore


def merged(partitions: Iterable[Iterable[Read]], choose: Callable[[int], int]) -> Iterator[Read]:
    """The records of partitions as a consumer may get them: each partition in order, interleaved in any way.

    choose: returns the index of the next partition, of so many.
    """
    left = [list(records) for records in partitions]
    while left := [records for records in left if records]:
        yield left[choose(len(left))].pop(0)
