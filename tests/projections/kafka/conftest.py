"""A Kafka broker for all tests of publishing; an outer conftest.py has the registry, on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers.kafka import Kafka, kafka


@pytest.fixture(scope="session")
def broker() -> Iterator[Kafka]:
    with kafka() as running:
        yield running
