"""The sink of AMQP 1.0 against RabbitMQ and Artemis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")

import projections.subscriptions.sinks.amqp  # noqa: F401
from tests.brokers.artemis import Artemis
from tests.brokers.rabbitmq import RabbitMQ
from tests.brokers.suite import Contract


def started(broker: Any) -> Iterator[Any]:
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


class TestRabbitMQ(Contract):
    @pytest.fixture(scope="class")
    def station(self) -> Iterator[RabbitMQ]:
        yield from started(RabbitMQ())


class TestArtemis(Contract):
    @pytest.fixture(scope="class")
    def station(self) -> Iterator[Artemis]:
        yield from started(Artemis())
