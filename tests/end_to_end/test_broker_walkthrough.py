"""A subscription whose broker stops and starts again: a server in its own process, real brokers and clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from cloudevents.core.v1.event import CloudEvent

from tests.support.brokers import kafka
from tests.support.brokers.mosquitto import mosquitto
from tests.support.brokers.nats import nats_server
from tests.support.brokers.suite import PASSWORD, USER, Broker, Receiver
from tests.support.polling import until
from tests.support.registries.client import xid
from tests.support.registries.subscribed import Registry, registry
from tests.support.subscribing import KEY

pytestmark = [pytest.mark.uses("Mosquitto", "NATS"), pytest.mark.timeout(300)]

#: Retries after a short delay, and often enough for the test.
SOON: Final = {"retry": {"initialdelay": 1, "maxdelay": 1, "multiplier": 1, "maxattempts": 1000}, "timeout": 5}
PLAIN: Final = {"credentialtype": "PLAIN", "identifier": USER, "secret": PASSWORD}
#: A round of writes: several events of each of these subjects, in turn.
SUBJECTS: Final = ("a/s/1", "a/s/2", "a/t/1")
TIMES: Final = 5
#: Brokers of these protocols store nothing for absent clients: deliveries pause until the reader is connected.
FORGETFUL: Final = ("MQTT5", "NATS")


@dataclass(frozen=True)
class Destination:
    """The topic, queue or subject of a broker to which events are sent. reading: a client that receives them."""

    sink_broker: Broker
    settings: Mapping[str, Any]
    reading: Callable[[], AbstractContextManager[Receiver]]

    @property
    def body(self) -> dict[str, Any]:
        """A subscription with this destination as its sink."""
        # Kafka's listeners with authentication advertise a host name that cannot be resolved here.
        credential = {} if self.sink_broker.protocol == "KAFKA" else {"sinkcredential": PLAIN}
        target = self.sink_broker.target(host="127.0.0.1", credential=None, **self.settings)
        settings = {**target.settings, **SOON}
        return {"protocol": self.sink_broker.protocol, "sink": target.uri, "protocolsettings": settings, **credential}


@pytest.fixture(params=["KAFKA", "MQTT5", "AMQP", "NATS"])
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Destination]:
    """A destination at a running broker, for each protocol."""
    with ExitStack() as stack:
        match request.param:
            case "KAFKA":
                broker = stack.enter_context(kafka.kafka())
                broker.make("walk")
                yield Destination(broker, {"topicname": "walk"}, lambda: kafka.reader(broker.own(), "walk"))
            case "AMQP":
                yield _queue(stack)
            case "MQTT5":
                server = stack.enter_context(mosquitto(tmp_path, "MQTT5"))
                yield Destination(server, {}, server.receiving)
            case _:
                nats = stack.enter_context(nats_server(tmp_path))
                yield Destination(nats, {}, nats.receiving)


def _queue(stack: ExitStack) -> Destination:
    pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")
    from tests.support.brokers import amqp, rabbitmq

    broker = stack.enter_context(closing(rabbitmq.RabbitMQ()))
    broker.start()
    return Destination(broker, {}, lambda: amqp.reading(broker.port, rabbitmq.QUEUE, emptied=False))


def write_round(server: Registry, round: str) -> list[str]:
    """Writes a round; returns the ids of the interactions."""
    return [server.write(version, name=f"{round}{number}") for number in range(TIMES) for version in SUBJECTS]


def arrived(receiver: Receiver, wanted: list[str], seconds: float = 60.0) -> list[CloudEvent]:
    """Returns events in the order of their first arrival, after the events of all wanted interactions have arrived."""
    found: dict[str, CloudEvent] = {}
    end = time.monotonic() + seconds
    while {str(each.get_extension("xregcorrelationid")) for each in found.values()} < set(wanted):
        assert time.monotonic() < end, f"{len(found)} of {len(wanted)} have come"
        for received in receiver.take(1, 1.0):
            event = received.event
            known = found.setdefault(event.get_id(), event)
            assert known.get_attributes() == event.get_attributes()
    return list(found.values())


@pytest.mark.long
def test_a_broker_that_goes_away(destination: Destination, tmp_path: Path) -> None:
    # SUB-801, 811, 812: events written during the outage arrive, in order by subject; duplicates have the same id
    folder = tmp_path / "registry"
    folder.mkdir()
    with registry(f"sqlite:///{folder / 'annals.db'}", folder, ANNALS_MASTER_KEY=KEY) as server:
        types = [f"io.xregistry.version.{action}" for action in ("created", "updated")]
        id = str(server.done("POST", "/subscriptions", {**destination.body, "types": types})["id"])
        with destination.reading() as receiver:
            first = write_round(server, "before")
            check_order(arrived(receiver, first), first)
            until(lambda: server.status(id)["lag"] == 0)
        destination.sink_broker.stop()
        second = write_round(server, "during")
        until(lambda: server.status(id)["state"] == "retrying")
        time.sleep(2)
        assert server.status(id)["pending"] == len(second)
        is_forgetful = destination.sink_broker.protocol in FORGETFUL
        if is_forgetful:
            server.act(id, "pause")
        destination.sink_broker.start()
        with destination.reading() as receiver:
            if is_forgetful:
                server.act(id, "resume")
            wanted = [*first, *second] if destination.sink_broker.protocol == "KAFKA" else second
            check_order(arrived(receiver, wanted), wanted)
        until(lambda: server.status(id)["state"] == "active")
        until(lambda: server.status(id)["lag"] == 0)
        assert server.status(id)["deadletters"] == 0
    assert PASSWORD not in (folder / "serve.log").read_text()


def check_order(events: list[CloudEvent], wanted: list[str]) -> None:
    """Checks that exactly the wanted events have arrived, in the order of the log for each subject."""
    assert sorted(str(each.get_extension("xregcorrelationid")) for each in events) == sorted(wanted)
    for version in SUBJECTS:
        found = [str(each.get_extension("sequence")) for each in events if each.get_subject() == xid(version)]
        assert len(found) == len(wanted) / len(SUBJECTS)
        assert found == sorted(found)
