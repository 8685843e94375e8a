"""Events a second through the sinks of subscriptions, compared with the bare client of the same broker."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

import pytest
from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.contract import DeliveryResult, SinkTarget
from annals.projections.subscriptions.sinks import load_sinks
from bench import sink_clients, webhooks
from bench.figures import Figure, Want
from bench.places import Place

#: The fastest of so many readings counts; they are taken in turns, because the machine's own pace changes.
TURNS: Final = 3
#: Events that are on their way at once, as a deliverer has them of different subjects.
WIDTH: Final = 256


@dataclass(frozen=True, slots=True)
class Course:
    """A running broker. target: where the sink sends to. bare: sends events with the client alone, until they are
    acknowledged."""

    target: SinkTarget
    bare: Callable[[Sequence[CloudEvent]], None]


class Here:
    """A resolver: every host is this machine."""

    async def resolve(self, host: str, port: int) -> str:
        return "127.0.0.1"


def measure(place: Place, quick: bool) -> Iterator[Figure]:
    """A figure for each protocol whose broker can be had; no store has a part in them, so they are measured once."""
    if place.name != "SQLite":
        return
    events = [_event(number) for number in range(1_000 if quick else 20_000)]
    for protocol, course in COURSES.items():
        try:
            with course() as ready:
                yield _figure(protocol, ready, events)
        except pytest.skip.Exception as why:  # how brokers of the tests say that they are not installed
            print(f"{protocol}: {why}", file=sys.stderr)


def _figure(protocol: str, course: Course, events: Sequence[CloudEvent]) -> Figure:
    turns = [(_seconds(course, events), _through(protocol, course, events)) for _ in range(TURNS)]
    floor, seconds = min(bare for bare, _ in turns), min(ours for _, ours in turns)
    rate, least = f"{len(events) / seconds:,.0f}/s", f"{len(events) / floor:,.0f}/s by the client alone"
    size = f"{len(events):,} events, {WIDTH} at once"
    return Figure(f"Sink {protocol}", "none", size, rate, least, floor / seconds, Want.AT_LEAST, 0.5, " x")


def _seconds(course: Course, events: Sequence[CloudEvent]) -> float:
    began = time.perf_counter()
    course.bare(events)
    return time.perf_counter() - began


def _through(protocol: str, course: Course, events: Sequence[CloudEvent]) -> float:
    """Seconds from the first to the last of events; the first of all connects and does not count."""

    async def run() -> float:
        sink = load_sinks()[protocol.partition(",")[0]](course.target, Here())
        waiting = iter(events)

        async def send() -> None:
            for event in waiting:
                outcome = await sink.send([event])
                assert outcome.result is DeliveryResult.DELIVERED, outcome

        try:
            await sink.send([_event(0)])
            began = time.perf_counter()
            await asyncio.gather(*(send() for _ in range(WIDTH)))
            return time.perf_counter() - began
        finally:
            await sink.close()

    return asyncio.run(run())


def _event(number: int) -> CloudEvent:
    return CloudEvent(
        {
            "id": f"0193e2b8.{number}.xregistry.version.updated",
            "source": "https://registry.example.com",
            "type": "io.xregistry.version.updated",
            "subject": f"/schemagroups/g{number}/schemas/s/versions/1",
            "time": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            "datacontenttype": "application/json",
            "xregcorrelationid": "0193e2b8",
            "sequence": f"{number:020}.00",
        },
        {"changed": ["description", "labels.stage"]},
    )


@contextmanager
def _kafka() -> Iterator[Course]:
    """All acknowledgements; the bare client has the larger requests and the patience that make it fastest."""
    from kafka import KafkaProducer

    from annals.projections.subscriptions.sinks.kafka.records import encode_record
    from tests.support.brokers.kafka import Kafka

    broker = Kafka()
    try:
        broker.start()
        topic = broker.fresh(partitions=4)
        producer = KafkaProducer(bootstrap_servers=broker.own(), linger_ms=5, batch_size=64 << 10)

        def bare(events: Sequence[CloudEvent]) -> None:
            for each in events:
                made = encode_record(each, "structured", "subject")
                producer.send(topic, value=made.value, key=made.key, headers=made.headers)
            producer.flush()

        bare([_event(0)])
        yield Course(broker.target(credential=None, host="127.0.0.1"), bare)
        producer.close()
    finally:
        broker.close()


@contextmanager
def _http() -> Iterator[Course]:
    """Structured events, each in a request of its own."""

    with webhooks.receiver() as url:
        yield Course(SinkTarget("s1", url, {"method": "POST"}), partial(webhooks.posted, url))


@contextmanager
def _amqp() -> Iterator[Course]:
    """RabbitMQ, a durable queue, each message acknowledged; the bare client is Proton's own loop with a handler."""
    pytest.importorskip("proton", reason="no python-qpid-proton")
    from bench.proton_sender import send_events
    from tests.support.brokers.rabbitmq import RabbitMQ

    broker = RabbitMQ()
    try:
        broker.start()
        target = broker.target(host="127.0.0.1", seconds=60)
        yield Course(target, partial(send_events, broker.port, target))
    finally:
        broker.close()


#: Brokers by protocol, with what else is to be said behind a comma; each says with `pytest.skip` what is missing.
COURSES: Final[dict[str, Callable[[], AbstractContextManager[Course]]]] = {
    "HTTP": _http,
    "KAFKA": _kafka,
    "AMQP": _amqp,
    "MQTT3": partial(sink_clients.mqtt, "MQTT3"),
    "MQTT5": partial(sink_clients.mqtt, "MQTT5"),
    "NATS": partial(sink_clients.nats, False),
    "NATS, with a stream": partial(sink_clients.nats, True),
}
