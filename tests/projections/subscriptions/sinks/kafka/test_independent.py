"""Records as Kafka's own consumer and the CloudEvents SDK for Java read them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from annals.projections.subscriptions.contract import DeliveryResult
from tests.support.brokers.kafka import Kafka, kafka
from tests.support.brokers.suite import TEXTS, deliver, event, open_sink, run
from tests.support.downloads.maven import Checker

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka", "Java"), pytest.mark.timeout(300)]

ARTIFACTS = (
    "org.apache.kafka:kafka-clients:4.3.0",
    "io.cloudevents:cloudevents-kafka:4.0.1",
    "io.cloudevents:cloudevents-json-jackson:4.0.1",
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as running:
        yield running


@pytest.fixture(scope="module")
def receiver() -> Iterator[Checker]:
    with closing(Checker(Path(__file__).with_name("Receiver.java"), ARTIFACTS)) as checker:
        yield checker


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_another_sdk_reads_the_same_events(broker: Kafka, receiver: Checker, contentmode: str) -> None:
    # SUB-701 to 703, SUB-705, SUB-710: attributes, data, key and mode, for events with and without data.
    topic = broker.fresh()
    given = [event(number, {"changed": [text]}, subject=f"/g/{text}") for number, text in enumerate(TEXTS)]
    given.append(event(99, None))

    async def scenario() -> None:
        async with open_sink(broker.target(contentmode=contentmode), "KAFKA") as sink:
            for each in given:
                assert (await deliver(sink, each)).result is DeliveryResult.DELIVERED

    run(scenario)
    found = receiver.ask({"server": broker.own(), "topic": topic, "count": len(given)})
    assert [each["structured"] for each in found] == [contentmode == "structured"] * (len(given) - 1) + [True]
    for record, sent in zip(found, given, strict=True):
        assert record["key"] == sent.get_subject()
        assert record["attributes"] | {"time": moment(record)} == sent.get_attributes()
        assert (json.loads(base64.b64decode(record["data"])) if "data" in record else None) == sent.get_data()


def moment(record: Any) -> datetime:
    """The time of an event; Java drops zeros at its end."""
    return datetime.fromisoformat(record["attributes"]["time"])
