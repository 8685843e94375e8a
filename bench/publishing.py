"""Records a second of `annals publish`, compared with the bare client that sends the same bytes to the same broker."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from threading import Event
from typing import Final

import pytest
from kafka import KafkaProducer

from annals.commands.store.log import Store
from annals.projections.compat.families import all_event_families
from annals.projections.kafka.cluster import KafkaCluster
from annals.projections.kafka.publisher import Publisher
from annals.projections.kafka.records import PublishedRecord
from annals.projections.kafka.topic_position import NO_OFFSET, TopicPosition, TopicPositions
from annals.projections.kafka.topics import topic_contents
from annals.projections.kafka.windows import Window, WindowReader
from bench.figures import Figure, Want
from bench.histories import URL, History, fill
from bench.places import Place
from tests.support.brokers.kafka import Kafka, kafka

PARTITIONS: Final = 4
#: The fastest of so many readings counts; they are taken in turns, because the machine's own pace changes.
TURNS: Final = 3
#: The share of the bare client's rate that is wanted.
WANTED: Final = 0.6
_SETS: Final = (("log", "events"), ("entities",))
_NUMBERS: Final = count(1)


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """A figure for each set of topics."""
    try:
        with place.fresh() as (url, _), kafka() as broker, closing(Store(url, public_url=URL)) as store:
            store.create()
            deque(fill(store, History(3_000 if quick else 20_000)), maxlen=0)
            for topics in _SETS:
                yield _figure(place, broker, store, topics)
    except pytest.skip.Exception as why:  # how brokers of the tests say that they are not installed
        print(f"publishing: {why}", file=sys.stderr)


def _figure(place: Place, broker: Kafka, store: Store, topics: tuple[str, ...]) -> Figure:
    # What is before the end of the first window does not count: the publisher connects, and creates the topics.
    windows = _windows(store, topics)
    records = [record for window in windows[1:] for record in window.records]
    turns = [(_bare_seconds(broker, records), _seconds(broker, store, topics)) for _ in range(TURNS)]
    floor, seconds = min(bare for bare, _ in turns), min(ours for _, ours in turns)
    rate, least = f"{len(records) / seconds:,.0f}/s", f"{len(records) / floor:,.0f}/s by the client alone"
    size = f"{len(records):,} records, {sum(record.size for record in records) >> 20} MB"
    what = f"Publishing {', '.join(topics)}"
    return Figure(what, place.name, size, rate, least, floor / seconds, Want.AT_LEAST, WANTED, " x")


def _windows(store: Store, topics: tuple[str, ...]) -> list[Window]:
    """All records of a store."""
    contents = topic_contents(topics, "bare", all_event_families())
    reader = WindowReader(store, contents)
    positions: TopicPositions = {
        topic.name: TopicPosition(0, 0, "", (NO_OFFSET,) * PARTITIONS, topic.key_format) for topic in contents
    }
    windows: list[Window] = []
    while (window := reader.next_window(positions)).positions != positions:
        positions = window.positions
        windows.append(window)
    return windows


def _bare_seconds(broker: Kafka, records: Sequence[PublishedRecord]) -> float:
    """Seconds until all is acknowledged, with the large requests and the patience that make the client fastest."""
    topic = broker.fresh(partitions=PARTITIONS)
    settings = {"linger_ms": 5, "batch_size": 64 << 10, "max_request_size": 8 << 20}
    with closing(KafkaProducer(bootstrap_servers=broker.own(), acks="all", **settings)) as producer:
        producer.partitions_for(topic)
        began = time.perf_counter()
        for record in records:
            producer.send(topic, record.value, record.key, record.headers)
        producer.flush()
        return time.perf_counter() - began


def _seconds(broker: Kafka, store: Store, topics: tuple[str, ...]) -> float:
    """Seconds from the end of the first window to the last commit, on new topics."""
    prefix = f"bench{next(_NUMBERS)}"
    times: list[float] = []
    publisher = Publisher(
        WindowReader(store, topic_contents(topics, prefix, all_event_families())),
        KafkaCluster(f"kafka://{broker.own()}"),
        prefix,
        partitions=PARTITIONS,
        report_progress=lambda done, total: times.append(time.perf_counter()),
    )
    publisher.publish_once(Event())
    return times[-1] - times[0]
