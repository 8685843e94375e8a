"""The producer with a real broker: transactions are visible as a whole or not at all, and waiting for brokers ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from kafka import errors

from annals.projections.kafka import producer as producing
from annals.projections.kafka.cluster import CertificateAuthorities, KafkaCluster
from annals.projections.kafka.log_topic import LOG
from annals.projections.kafka.producer import Producer, PublishingStopped, RecordRefused
from annals.projections.kafka.records import PublishedRecord
from tests.support.brokers.kafka import LARGEST, Kafka, all_records
from tests.support.brokers.suite import GOOD, HOST, PASSWORD

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


def record(number: int, size: int = 10) -> PublishedRecord:
    return PublishedRecord(LOG, number % 3, number, b"/dirs/d", b"x" * size, [("annals_number", b"%d" % number)])


@contextmanager
def opened(broker: Kafka, prefix: str) -> Iterator[Producer]:
    cluster = KafkaCluster(f"kafka://{broker.own()}")
    cluster.create_topics([f"{prefix}.log"], 3)
    with closing(Producer(cluster, prefix, lambda: False)) as producer:
        yield producer


def numbers(broker: Kafka, prefix: str) -> list[int]:
    """The numbers of a topic's committed records."""
    with opened(broker, prefix):  # which waits until committed records are visible
        return sorted(int(dict(each.headers)["annals_number"]) for each in all_records(broker.own(), f"{prefix}.log"))


def test_transactions(broker: Kafka) -> None:
    with opened(broker, "whole") as producer:
        producer.begin()
        assert producer.send(map(record, range(1, 8))) == {(LOG, 0): 1, (LOG, 1): 2, (LOG, 2): 1}
        assert all_records(broker.own(), "whole.log") == []
        producer.commit()
        producer.begin()
        producer.send(map(record, range(8, 11)))
    assert numbers(broker, "whole") == list(range(1, 8))


def test_a_later_producer_shuts_out_an_earlier_one(broker: Kafka) -> None:
    with opened(broker, "fenced") as earlier:
        earlier.begin()
        earlier.send([record(1)])
        with opened(broker, "fenced") as later:
            later.begin()
            later.send([record(2)])
            later.commit()
        with pytest.raises((errors.ProducerFencedError, errors.InvalidProducerEpochError)):
            earlier.commit()
    assert numbers(broker, "fenced") == [2]


def test_a_record_that_is_refused(broker: Kafka) -> None:
    # The error names it, whatever waits behind it, and no record of its transaction is visible
    with opened(broker, "refused") as producer:
        producer.begin()
        with pytest.raises(RecordRefused) as refused:
            producer.send(record(number, 2 * LARGEST if number == 1500 else 300) for number in range(1, 3001))
        assert refused.value.record.position == 1500
    assert numbers(broker, "refused") == []


@pytest.mark.long
def test_waiting_ends(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(broker, "waiting") as producer:
        producer.begin()
        producer.send([record(1)])
        monkeypatch.setattr(producing, "ACKNOWLEDGE_SECONDS", 0.5)
        broker.stop()
        try:
            with pytest.raises(errors.KafkaTimeoutError, match="the brokers do not acknowledge records"):
                producer.send([record(2)])
        finally:
            broker.start()


@pytest.mark.long
def test_waiting_can_be_stopped(broker: Kafka) -> None:
    cluster = KafkaCluster(f"kafka://{broker.own()}")
    cluster.create_topics(["stopped.log"], 3)
    stopped = False
    with closing(Producer(cluster, "stopped", lambda: stopped)) as producer:
        producer.begin()
        producer.send([record(1)])
        broker.stop()
        try:
            stopped = True
            with pytest.raises(PublishingStopped):
                producer.send([record(2)])
        finally:
            broker.start()


@pytest.mark.long
def test_a_password_that_is_no_longer_one(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    # The client library alone would retry for ever.
    original = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        return original("127.0.0.1" if host == HOST else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    cluster = KafkaCluster(f"SASL_SSL://{HOST}:{broker.ports['SASLTLS']}", GOOD, CertificateAuthorities(str(broker.ca)))
    cluster.create_topics(["password.log"], 3)
    with closing(Producer(cluster, "password", lambda: False)) as producer:
        producer.begin()
        producer.send([record(1)])
        broker.restart("another password")
        try:
            with pytest.raises(errors.SaslAuthenticationFailedError):
                producer.send([record(2)])
        finally:
            broker.restart(PASSWORD)
