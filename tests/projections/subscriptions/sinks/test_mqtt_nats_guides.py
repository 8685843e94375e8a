"""The guides to MQTT and NATS do what they say: their subscriptions and programs, with a broker between them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from annals.domain.subscriptions.sink_uris import MQTT5, NATS
from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_subscription
from annals.projections.subscriptions.contract import DeliveryResult, SinkTarget
from tests.support.brokers import mosquitto, nats
from tests.support.brokers.suite import deliver, event, open_sink
from tests.support.ports import free_port, wait_for_port
from tests.support.serving import ROOT

pytestmark = pytest.mark.uses("Mosquitto", "NATS")


@contextmanager
def running(*command: str | Path) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(int(str(command[-1])), lambda: process.poll() is None)
            yield
        finally:
            process.kill()


def block(guide: str, language: str, port: int) -> str:
    """The one block of a language, for a broker at another port."""
    (found,) = re.findall(
        rf"```{language}\n(.*?)```\n", (ROOT / "docs" / "guides" / "subscriptions" / guide).read_text(), re.DOTALL
    )
    return re.sub(r"127\.0\.0\.1(:|\", )(1883|4222)", rf"127.0.0.1\g<1>{port}", str(found))


def target(document: str) -> SinkTarget:
    """Where a subscription sends to."""
    shown = parse_subscription(json.loads(document), SubscriptionSupport((MQTT5, NATS), plaintext=True)).attributes
    settings = shown["protocolsettings"]
    assert isinstance(settings, dict)
    return SinkTarget("s1", str(shown["sink"]), settings, settings["contentmode"], None, settings["timeout"])


# Both brokers serve whoever comes when they are started without any configuration, as in docker-compose.yml.
@pytest.mark.parametrize(
    ("guide", "protocol", "start"),
    [
        ("mqtt.md", MQTT5, lambda: (mosquitto.program("mosquitto"), "-p")),
        ("nats.md", NATS, lambda: (nats.program(), "-a", "127.0.0.1", "-p")),
    ],
)
def test_the_example(guide: str, protocol: str, start: object, tmp_path: Path) -> None:
    port = free_port()
    program = tmp_path / "receive.py"
    program.write_text(block(guide, "python", port))
    listening, printed = block(guide, "text", port).splitlines()
    sent = event(1, {"changed": ["description"]}, subject="/schemagroups/weather/schemas/report/versions/1")

    async def scenario() -> None:
        async with open_sink(target(block(guide, "json", port)), protocol) as sink:
            assert (await deliver(sink, sent)).result is DeliveryResult.DELIVERED

    assert callable(start)
    with running(*start(), str(port)), subprocess.Popen([sys.executable, program], stdout=-1, text=True) as reading:
        try:
            assert reading.stdout is not None
            assert reading.stdout.readline().strip() == listening
            asyncio.run(scenario())
            assert reading.stdout.readline().strip() == printed
        finally:
            reading.kill()
