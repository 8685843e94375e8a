"""A Kafka broker for all tests of publishing; a registry on each database in turn comes from above."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers.kafka import Kafka


@pytest.fixture(scope="session")
def broker() -> Iterator[Kafka]:
    kafka = Kafka()
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.close()
