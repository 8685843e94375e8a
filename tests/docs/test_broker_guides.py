"""The guides to sinks and to publishing do what they say: each page's program runs with a real broker."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from standardwebhooks import Webhook

from tests.support.brokers import mosquitto, nats
from tests.support.brokers.kafka import Kafka, kafka
from tests.support.brokers.rabbitmq import RabbitMQ
from tests.support.guides import Block, Guide, followed, names_of, pattern, port_names
from tests.support.polling import until
from tests.support.ports import free_port, wait_for_port


@contextmanager
def broker(shown_port: int, *command: str | Path) -> Iterator[dict[str, str]]:
    """A broker without authentication, as in docker-compose.yml; yields `names` for its port.

    command: without its last argument, the port.
    """
    port = free_port()
    with subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port, lambda: process.poll() is None)
            yield names_of({shown_port: port})
        finally:
            process.kill()


@pytest.fixture(scope="module")
def kafka_broker() -> Iterator[Kafka]:
    with kafka() as made:
        yield made


def follow_sink(
    page: str,
    folder: Path,
    names: Mapping[str, str],
    starts_first: bool = True,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Follows a page whose program prints events.

    starts_first: the program must run before the first event. then: called while the program still runs.
    """
    with followed(f"guides/subscriptions/{page}", folder, dict(names)) as guide:
        (program,) = (block.text for block in guide.left if block.language == "python")
        if starts_first:
            with guide.running(program) as printed:
                if guide.shown[-1].startswith("listening"):
                    until(lambda: printed.read_text().startswith("listening"), 30)
                guide.follow(python=lambda block: None)
                until_shown(guide, printed)
                then()
        else:
            guide.follow(python=lambda block: None)
            with guide.running(program) as printed:
                until_shown(guide, printed)


def until_shown(guide: Guide, printed: Path) -> None:
    """Waits until the program has printed the last output block of the page."""
    shown = pattern(guide.shown[-1])
    with suppress(AssertionError):  # the assertion below reports the output
        until(lambda: re.fullmatch(shown, printed.read_text().strip()) is not None, 60)
    assert re.fullmatch(shown, printed.read_text().strip()), printed.read_text()


def test_webhooks(tmp_path: Path) -> None:
    # SUB-710: the SDK parses the received events
    names = port_names(9000)

    def forge() -> None:
        key = Webhook(base64.b64encode(b"x" * 32).decode())
        sent_at, body = datetime.now(UTC), b'{"specversion": "1.0"}'
        signed = {"webhook-id": "1", "webhook-timestamp": str(int(sent_at.timestamp()))}
        signature = {"webhook-signature": key.sign("1", sent_at, body.decode())}
        with pytest.raises(httpx.RemoteProtocolError):  # the program closes such a request without a response
            httpx.post(f"http://{names['127.0.0.1:9000']}/events", content=body, headers={**signed, **signature})

    follow_sink("http.md", tmp_path, names, then=forge)


@pytest.mark.uses("Mosquitto")
def test_mqtt(tmp_path: Path) -> None:
    with broker(1883, mosquitto.program("mosquitto"), "-p") as names:
        follow_sink("mqtt.md", tmp_path, names)


@pytest.mark.uses("NATS")
def test_nats(tmp_path: Path) -> None:
    with broker(4222, nats.program(), "-a", "127.0.0.1", "-p") as names:
        follow_sink("nats.md", tmp_path, names)


@pytest.mark.uses("RabbitMQ")
def test_amqp(tmp_path: Path) -> None:
    pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")
    made = RabbitMQ()
    try:
        made.start()
        follow_sink("amqp.md", tmp_path, names_of({5672: made.port}))
    finally:
        made.close()


#: A broker takes a few seconds to start, and much longer on a busy machine.
@pytest.mark.uses("Kafka")
@pytest.mark.timeout(300)
def test_kafka(kafka_broker: Kafka, tmp_path: Path) -> None:
    kafka_broker.make("registry")
    follow_sink("kafka.md", tmp_path, names_of({9092: kafka_broker.ports["OWN"]}), starts_first=False)


@pytest.mark.uses("Kafka")
@pytest.mark.timeout(300)
def test_publishing(kafka_broker: Kafka, tmp_path: Path) -> None:
    programs: list[Block] = []
    with followed("guides/publishing.md", tmp_path, names_of({9092: kafka_broker.ports["OWN"]})) as guide:
        guide.serve()
        guide.follow(python=programs.append)
        with guide.running("\n\n".join(block.text for block in programs)) as printed:
            first_two = pattern("\n".join(programs[-1].output.splitlines()[:2]))
            until(lambda: re.match(first_two, printed.read_text()) is not None, 60)
