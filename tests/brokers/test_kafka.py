"""Deliveries to a real Kafka broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import projections.subscriptions.sinks.kafka  # noqa: F401
from tests.brokers.kafka import Kafka
from tests.brokers.suite import Contract, Station


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    kafka = Kafka()
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.close()


class TestKafka(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def station(cls, broker: Kafka) -> Station:
        return broker
