"""docs/guides/subscriptions/amqp.md does what it says: its subscription and its program, with a broker between them."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")

from annals.domain.subscriptions.subscription_document import SubscriptionSupport, parse_subscription
from annals.projections.subscriptions.contract import Credential, DeliveryResult, SinkTarget
from tests.support.brokers.rabbitmq import RabbitMQ
from tests.support.brokers.suite import LocalResolver, deliver, event, open_sink
from tests.support.serving import ROOT

pytestmark = pytest.mark.uses("RabbitMQ")

_GUIDE = ROOT / "docs" / "guides" / "subscriptions" / "amqp.md"


@pytest.fixture
def broker() -> Iterator[RabbitMQ]:
    made = RabbitMQ()
    try:
        made.start()
        yield made
    finally:
        made.close()


def block(language: str, port: int) -> str:
    """The one block of a language, for a broker at another port."""
    (found,) = re.findall(rf"```{language}\n(.*?)```\n", _GUIDE.read_text(), re.DOTALL)
    return str(found).replace(":5672", f":{port}")


def target(document: str) -> SinkTarget:
    """Where a subscription sends to."""
    asked = parse_subscription(json.loads(document), SubscriptionSupport(("AMQP",), plaintext=True))
    shown = asked.attributes
    settings, credential = shown["protocolsettings"], shown["sinkcredential"]
    assert isinstance(settings, dict)
    assert isinstance(credential, dict)
    secret = asked.secrets["sinkcredential.secret"]
    plain = Credential(credential["credentialtype"], credential["identifier"], secret)
    return SinkTarget("s1", str(shown["sink"]), settings, settings["contentmode"], plain, settings["timeout"])


def test_the_example(broker: RabbitMQ, tmp_path: Path) -> None:
    program = tmp_path / "receive.py"
    program.write_text(block("python", broker.port))
    sent = event(1, {"changed": ["description"]}, subject="/schemagroups/weather/schemas/report/versions/1")

    async def scenario() -> None:
        async with open_sink(target(block("json", broker.port)), "AMQP", LocalResolver()) as sink:
            assert (await deliver(sink, sent)).result is DeliveryResult.DELIVERED

    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as reading:
        try:
            asyncio.run(scenario())
            assert reading.stdout is not None
            assert reading.stdout.readline() == block("text", broker.port)
        finally:
            reading.kill()
