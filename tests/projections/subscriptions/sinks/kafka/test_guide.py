"""docs/guides/subscriptions/kafka.md: its subscription and its program work, with a broker between them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_subscription
from annals.projections.subscriptions.contract import DeliveryResult, SinkTarget
from tests.support.brokers.kafka import Kafka, kafka
from tests.support.brokers.suite import LocalResolver, deliver, event, open_sink
from tests.support.serving import ROOT

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]

_GUIDE = ROOT / "docs" / "guides" / "subscriptions" / "kafka.md"


@pytest.fixture
def broker() -> Iterator[Kafka]:
    with kafka() as made:
        made.make("registry")
        yield made


def block(language: str, port: int) -> str:
    """The one block of a language, for a broker at another port."""
    (found,) = re.findall(rf"```{language}\n(.*?)```\n", _GUIDE.read_text(), re.DOTALL)
    return str(found).replace(":9092", f":{port}")


def target(document: str) -> SinkTarget:
    """Where a subscription sends to."""
    shown = parse_subscription(json.loads(document), SubscriptionSupport(("KAFKA",), plaintext=True)).attributes
    settings = shown["protocolsettings"]
    assert isinstance(settings, dict)
    return SinkTarget("s1", str(shown["sink"]), settings, settings["contentmode"], None, settings["timeout"])


def test_the_example(broker: Kafka, tmp_path: Path) -> None:
    port = broker.ports["OWN"]
    program = tmp_path / "receive.py"
    program.write_text(block("python", port))
    sent = event(1, {"changed": ["description"]}, subject="/schemagroups/weather/schemas/report/versions/1")

    async def scenario() -> None:
        async with open_sink(target(block("json", port)), "KAFKA", LocalResolver()) as sink:
            assert (await deliver(sink, sent)).result is DeliveryResult.DELIVERED

    with subprocess.Popen([sys.executable, "-W", "ignore", program], stdout=subprocess.PIPE, text=True) as reading:
        try:
            asyncio.run(scenario())
            assert reading.stdout is not None
            assert reading.stdout.readline() == block("text", port)
        finally:
            reading.kill()


#: What the guide says of sinks and credentials, by scheme: the channel with and without one.
SCHEMES = {"kafka": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "SASL_SSL": "SSL"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_settings_of_the_producer(scheme: str) -> None:  # § 2.5: schemes, several servers, defaults
    from annals.projections.subscriptions.sinks.kafka.sink import producer_config

    told = producer_config(SinkTarget("s1", f"{scheme}://one:1,[2001:db8::1],three/orders", {"acks": "-1"}))
    assert told["security_protocol"] == SCHEMES[scheme]
    assert told["bootstrap_servers"] == ["one:1", "[2001:db8::1]:9092", "three:9092"]
    assert (told["client_id"], told["acks"]) == ("annals", "all")
