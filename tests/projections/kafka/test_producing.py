"""The producer at a real broker: what is under way is bounded, and waiting ends when it is of no use."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from kafka import errors

from annals.projections.kafka import producer as producing
from annals.projections.kafka.cluster import CertificateAuthorities, KafkaCluster
from annals.projections.kafka.producer import MAX_IN_FLIGHT_BYTES, Producer, PublishingStopped, RecordFailed
from annals.projections.kafka.records import LOG, PublishedRecord
from tests.support.brokers.kafka import LARGEST, Kafka, next_records, topic_consumer
from tests.support.brokers.suite import GOOD, HOST, PASSWORD

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


def record(number: int, size: int = 10, key: bytes = b"/dirs/d") -> PublishedRecord:
    return PublishedRecord(LOG, number, key, b"x" * size, [("annals_number", b"%d" % number)])


@contextmanager
def opened(cluster: KafkaCluster, prefix: str) -> Iterator[Producer]:
    cluster.create_topics([f"{prefix}.log"], 1)
    with closing(Producer(cluster, prefix, lambda: False)) as producer:
        yield producer


@pytest.mark.long
def test_what_is_under_way_is_bounded(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # Memory stays flat while a broker says nothing; then all that was sent arrives, once and in order.
    with opened(KafkaCluster(f"kafka://{broker.own()}"), "bounded") as producer:
        producer.send(record(1))
        producer.flush()
        monkeypatch.setattr(producing, "ACKNOWLEDGE_SECONDS", 0.5)
        broker.stop()
        sent = 1
        try:
            with pytest.raises(TimeoutError):
                while sent < 1000:
                    producer.send(record(sent + 1, 90_000))
                    sent += 1
            assert sent == 1 + MAX_IN_FLIGHT_BYTES // record(10, 90_000).size
        finally:
            broker.start()
        monkeypatch.setattr(producing, "ACKNOWLEDGE_SECONDS", 120.0)
        producer.flush()
    with topic_consumer(broker.own(), "bounded.log") as consumer:
        records = [*next_records(consumer, sent, 60), *next_records(consumer, 1, 2)]
        found = [int(dict(each.headers)["annals_number"]) for each in records]
    assert found == list(range(1, sent + 1))


def test_a_record_that_is_refused_is_not_jumped_over(broker: Kafka) -> None:
    # Whatever waits behind it: each partition ends as it began, in order, and its own has nothing behind it.
    cluster = KafkaCluster(f"kafka://{broker.own()}")
    cluster.create_topics(["jumped.log"], 3)
    with closing(Producer(cluster, "jumped", lambda: False)) as producer:
        with pytest.raises(RecordFailed) as failed:
            for number in range(1, 3001):
                producer.send(record(number, 2 * LARGEST if number == 1500 else 300, b"%d" % (number % 30)))
            producer.flush()
        assert failed.value.record.position == 1500
    with topic_consumer(broker.own(), "jumped.log") as consumer:
        found = next_records(consumer, sum(consumer.end_offsets(list(consumer.assignment())).values()), 60)
    parts = {each.key: each.partition for each in found}
    assert len(parts) == 30
    for part in set(parts.values()):
        numbers = [int(dict(each.headers)["annals_number"]) for each in found if each.partition == part]
        sent = [number for number in range(1, 3001) if parts[b"%d" % (number % 30)] == part]
        assert numbers == sent[: len(numbers)]
        assert 1500 not in sent or numbers[-1] < 1500


@pytest.mark.long
def test_waiting_can_be_stopped(broker: Kafka) -> None:
    cluster = KafkaCluster(f"kafka://{broker.own()}")
    cluster.create_topics(["stopped.log"], 1)
    stopped = False
    with closing(Producer(cluster, "stopped", lambda: stopped)) as producer:
        producer.send(record(1))
        producer.flush()
        broker.stop()
        try:
            producer.send(record(2))
            stopped = True
            with pytest.raises(PublishingStopped):
                producer.flush()
        finally:
            broker.start()


@pytest.mark.long
def test_a_password_that_is_no_longer_one(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # The client itself would try for ever.
    ask = socket.getaddrinfo

    def answer(host: Any, *arguments: Any, **options: Any) -> Any:
        return ask("127.0.0.1" if host == HOST else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    cluster = KafkaCluster(f"SASL_SSL://{HOST}:{broker.ports['SASLTLS']}", GOOD, CertificateAuthorities(str(broker.ca)))
    with opened(cluster, "refused") as producer:
        producer.send(record(1))
        producer.flush()
        broker.restart("another password")
        try:
            producer.send(record(2))
            with pytest.raises(errors.SaslAuthenticationFailedError):
                while True:
                    producer.flush()
        finally:
            broker.restart(PASSWORD)
