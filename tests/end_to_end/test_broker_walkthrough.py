"""A subscription's life with a broker that goes away: a server as a process of its own, real brokers and clients."""

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

#: Retried soon, and as often as it takes.
SOON: Final = {"retry": {"initialdelay": 1, "maxdelay": 1, "multiplier": 1, "maxattempts": 1000}, "timeout": 5}
PLAIN: Final = {"credentialtype": "PLAIN", "identifier": USER, "secret": PASSWORD}
#: What is written in one go: several events of each of several subjects, one after the other.
SUBJECTS: Final = ("a/s/1", "a/s/2", "a/t/1")
TIMES: Final = 5
#: Protocols whose brokers keep nothing for those who are away: deliveries pause until their reader is back.
FORGETFUL: Final = ("MQTT5", "NATS")


@dataclass(frozen=True)
class Place:
    """The one place at a broker that events go to. reading: a client that sees what comes."""

    sink_broker: Broker
    settings: Mapping[str, Any]
    reading: Callable[[], AbstractContextManager[Receiver]]

    @property
    def body(self) -> dict[str, Any]:
        """A subscription to it."""
        # Kafka's listeners for those who show who they are tell them a name that leads nowhere here.
        shown = {} if self.sink_broker.protocol == "KAFKA" else {"sinkcredential": PLAIN}
        target = self.sink_broker.target(host="127.0.0.1", credential=None, **self.settings)
        settings = {**target.settings, **SOON}
        return {"protocol": self.sink_broker.protocol, "sink": target.uri, "protocolsettings": settings, **shown}


@pytest.fixture(params=["KAFKA", "MQTT5", "AMQP", "NATS"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place at a started broker of each protocol."""
    with ExitStack() as stack:
        match request.param:
            case "KAFKA":
                broker = stack.enter_context(kafka.kafka())
                broker.make("walk")
                yield Place(broker, {"topicname": "walk"}, lambda: kafka.reader(broker.own(), "walk"))
            case "AMQP":
                yield _queue(stack)
            case "MQTT5":
                server = stack.enter_context(mosquitto(tmp_path, "MQTT5"))
                yield Place(server, {}, server.receiving)
            case _:
                nats = stack.enter_context(nats_server(tmp_path))
                yield Place(nats, {}, nats.receiving)


def _queue(stack: ExitStack) -> Place:
    pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")
    from tests.support.brokers import amqp, rabbitmq

    broker = stack.enter_context(closing(rabbitmq.RabbitMQ()))
    broker.start()
    return Place(broker, {}, lambda: amqp.reading(broker.port, rabbitmq.QUEUE, emptied=False))


def written(server: Registry, round: str) -> list[str]:
    """The ids of the interactions of some writes."""
    return [server.write(version, name=f"{round}{number}") for number in range(TIMES) for version in SUBJECTS]


def arrived(receiver: Receiver, wanted: list[str], seconds: float = 60.0) -> list[CloudEvent]:
    """Events in the order of their first arrival, once all that are wanted have come."""
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
def test_a_broker_that_goes_away(place: Place, tmp_path: Path) -> None:
    # SUB-801, 811, 812: all that was written while it was away arrives, in order by subject; only ids come twice
    folder = tmp_path / "registry"
    folder.mkdir()
    with registry(f"sqlite:///{folder / 'annals.db'}", folder, ANNALS_MASTER_KEY=KEY) as server:
        types = [f"io.xregistry.version.{action}" for action in ("created", "updated")]
        id = str(server.done("POST", "/subscriptions", {**place.body, "types": types})["id"])
        with place.reading() as receiver:
            first = written(server, "before")
            ordered(arrived(receiver, first), first)
            until(lambda: server.status(id)["lag"] == 0)
        place.sink_broker.stop()
        second = written(server, "during")
        until(lambda: server.status(id)["state"] == "retrying")
        time.sleep(2)
        assert server.status(id)["pending"] == len(second)
        forgets = place.sink_broker.protocol in FORGETFUL
        if forgets:
            server.act(id, "pause")
        place.sink_broker.start()
        with place.reading() as receiver:
            if forgets:
                server.act(id, "resume")
            wanted = [*first, *second] if place.sink_broker.protocol == "KAFKA" else second
            ordered(arrived(receiver, wanted), wanted)
        until(lambda: server.status(id)["state"] == "active")
        until(lambda: server.status(id)["lag"] == 0)
        assert server.status(id)["deadletters"] == 0
    assert PASSWORD not in (folder / "serve.log").read_text()


def ordered(events: list[CloudEvent], wanted: list[str]) -> None:
    """Exactly what was wanted has come, in the order of the log for each subject."""
    assert sorted(str(each.get_extension("xregcorrelationid")) for each in events) == sorted(wanted)
    for version in SUBJECTS:
        found = [str(each.get_extension("sequence")) for each in events if each.get_subject() == xid(version)]
        assert len(found) == len(wanted) / len(SUBJECTS)
        assert found == sorted(found)
