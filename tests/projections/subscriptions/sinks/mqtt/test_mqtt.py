"""Tests of MQTT only: properties, qualities of service, limits and reason codes, WebSockets, tokens."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from annals.domain.subscriptions.sink_uris import MQTT3, MQTT5
from annals.projections.subscriptions.contract import Credential, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.sinks.mqtt import connection as mqtt_link
from tests.support.brokers.mosquitto import FORBIDDEN, TOPIC, Mosquitto, Raw, mosquitto
from tests.support.brokers.suite import (
    HOST,
    PASSWORD,
    LocalResolver,
    deliver,
    event,
    frozen_process,
    open_sink,
    recording_server,
    run,
)

pytestmark = pytest.mark.uses("Mosquitto")

#: Limits that a test can exceed.
BOUNDS = "max_packet_size 4000\nmessage_size_limit 2000\nmax_inflight_messages 5"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto"), MQTT5) as sink_broker:
        yield sink_broker


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto"), MQTT5, BOUNDS) as sink_broker:
        yield sink_broker


def attempt(target: SinkTarget, *events: Any, protocol: str = MQTT5) -> list[Outcome]:
    """The outcomes of events that are sent at the same time."""
    outcomes: list[Outcome] = []

    async def scenario() -> None:
        async with open_sink(target, protocol) as sink:
            outcomes.extend(await asyncio.gather(*(deliver(sink, each) for each in events)))

    run(scenario)
    return outcomes


def one(broker: Mosquitto, target: SinkTarget, sent: Any, protocol: str = MQTT5) -> Raw:
    """The message of a delivered event."""
    with broker.receiving(target.settings["topicname"]) as receiver:
        assert [each.result for each in attempt(target, sent, protocol=protocol)] == [DeliveryResult.DELIVERED]
        (raw,) = receiver.raw(1)
    return raw


def test_binary_mode_by_the_table(broker: Mosquitto) -> None:  # §7, MQTT5 binary: user properties without a prefix
    sent = event(1, {"changed": ["name"]}, time=datetime(2026, 1, 2, 3, 4, 5, 6, UTC), counted=7, flag=True)
    raw = one(broker, broker.target(contentmode="binary"), sent)
    assert raw.properties.pop("ContentType") == "application/json"
    assert raw.properties == {
        "UserProperty": [
            ("specversion", "1.0"),
            ("id", "0193e2b8.1.xregistry.version.updated"),
            ("source", "https://registry.example.com"),
            ("type", "io.xregistry.version.updated"),
            ("subject", "/schemagroups/g/schemas/s1/versions/1"),
            ("time", "2026-01-02T03:04:05.000006Z"),
            ("xregcorrelationid", "0193e2b8"),
            ("sequence", "00000000000000000001.00"),
            ("counted", "7"),
            ("flag", "true"),
        ]
    }
    assert raw.payload == b'{"changed":["name"]}'


def test_structured_mode_by_the_table(broker: Mosquitto) -> None:  # §7, MQTT5 structured; SUB-703: no nulls
    raw = one(broker, broker.target(), event(1, subject=None, counted=7, flag=True))
    assert raw.properties == {"ContentType": "application/cloudevents+json; charset=utf-8"}
    assert orjson.loads(raw.payload) == {
        "specversion": "1.0",
        "id": "0193e2b8.1.xregistry.version.updated",
        "source": "https://registry.example.com",
        "type": "io.xregistry.version.updated",
        "time": "2026-01-02T03:04:05.060001Z",
        "xregcorrelationid": "0193e2b8",
        "sequence": "00000000000000000001.00",
        "datacontenttype": "application/json",
        "counted": 7,
        "flag": True,
        "data": {"changed": ["name", "number1"]},
    }


@pytest.mark.parametrize(
    ("kind", "data", "member", "binary"),
    [
        ("application/json", {"a": 1}, {"data": {"a": 1}}, b'{"a":1}'),
        ("application/vnd.x+json; charset=utf-8", [1, "ä"], {"data": [1, "ä"]}, '[1,"ä"]'.encode()),
        ("application/json", "text", {"data": "text"}, b'"text"'),
        ("text/plain", "ä%", {"data": "ä%"}, "ä%".encode()),
        ("application/octet-stream", b"\x00\xff", {"data_base64": "AP8="}, b"\x00\xff"),
        ("application/json", b"{}", {"data_base64": "e30="}, b"{}"),
    ],
)
def test_data_of_each_kind(broker: Mosquitto, kind: str, data: Any, member: Any, binary: bytes) -> None:  # SUB-703
    sent = event(1, data, datacontenttype=kind)
    whole = orjson.loads(one(broker, broker.target(), sent).payload)
    assert {name: value for name, value in whole.items() if name.startswith("data") and name[4:5] != "c"} == member
    raw = one(broker, broker.target(contentmode="binary"), sent)
    assert (raw.properties["ContentType"], raw.payload) == (kind, binary)


def test_what_headers_cannot_hold_is_structured(broker: Mosquitto) -> None:
    raw = one(broker, broker.target(contentmode="binary"), event(1, subject="a\nb"))
    assert orjson.loads(raw.payload)["subject"] == "a\nb"


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_mqtt_3_is_structured_always(tmp_path: Path, contentmode: str) -> None:  # §7, MQTT3
    with mosquitto(tmp_path, MQTT3) as broker:
        raw = one(broker, broker.target(contentmode=contentmode), event(1), MQTT3)
    assert raw.properties == {}
    assert orjson.loads(raw.payload)["id"] == "0193e2b8.1.xregistry.version.updated"


@pytest.mark.parametrize("protocol", [MQTT3, MQTT5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_qualities_of_service(broker: Mosquitto, protocol: str, qos: int) -> None:
    # SUB-709: an event with quality 0 is delivered once it is written
    assert one(broker, broker.target(qos=qos), event(1), protocol).qos == qos


def test_retained_with_an_expiry(broker: Mosquitto) -> None:
    target = broker.target(topicname="annals/kept", retain=True, expiry=90)
    raw = one(broker, target, event(1))
    assert raw.retain
    assert 80 <= raw.properties["MessageExpiryInterval"] <= 90
    with broker.receiving("annals/kept") as late:
        assert [each.retain for each in late.raw(1)] == [True]


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_user_properties_replace_nothing(broker: Mosquitto, contentmode: str) -> None:  # SUB-708: they are added
    target = broker.target(contentmode=contentmode, userproperties={"tenant": "Ünï", "id": "mine"})
    pairs = one(broker, target, event(1)).properties["UserProperty"]
    assert ("tenant", "Ünï") in pairs
    assert [value for name, value in pairs if name == "id"] == (
        ["mine"] if contentmode == "structured" else ["0193e2b8.1.xregistry.version.updated"]
    )


def test_web_sockets(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(broker.ca))
    large = event(1, {"changed": ["x" * 70_000]})
    for uri in (f"ws://{HOST}:{broker.web}", f"wss://{HOST}:{broker.secure_web}/mqtt?a=b"):
        assert orjson.loads(one(broker, broker.target(uri=uri), large).payload)["data"] == large.get_data()


def test_a_web_server_that_is_no_web_socket(broker: Mosquitto) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        (outcome,) = attempt(broker.target(uri=f"ws://{HOST}:{listening.getsockname()[1]}"), event(1))
        thread.join()
    assert outcome == Outcome(DeliveryResult.RETRY, "connection", "the connection failed")


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_more_than_a_packet_may_have(bounded: Mosquitto, qos: int) -> None:  # 8.3: rejected, not retried
    (outcome,) = attempt(bounded.target(qos=qos), event(1, {"changed": ["x" * 5000]}))
    assert outcome == Outcome(DeliveryResult.REJECTED, "mqtt:0x95", "packet too large")


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
@pytest.mark.parametrize("qos", [0, 1])
def test_the_largest_packet(tmp_path: Path, qos: int, contentmode: str) -> None:  # to the byte
    with mosquitto(tmp_path, MQTT5, "max_packet_size 4000") as broker:
        target = broker.target(qos=qos, contentmode=contentmode)
        outcomes = attempt(target, *(event(1, {"changed": ["x" * size]}) for size in range(3300, 4000)))
        largest = [each.result for each in outcomes].index(DeliveryResult.REJECTED)
        assert 0 < largest < 700
        with broker.receiving() as receiver:
            for size, expected in (
                (3299 + largest, DeliveryResult.DELIVERED),
                (3300 + largest, DeliveryResult.REJECTED),
            ):
                assert attempt(target, event(1, {"changed": ["x" * size]}))[0].result is expected
            (raw,) = receiver.raw(1)
    properties = sum(5 + len(name) + len(value) for name, value in raw.properties.get("UserProperty", ()))
    properties += 3 + len(raw.properties["ContentType"])
    rest = 2 + len(TOPIC) + (2 if qos else 0) + (1 if properties < 128 else 2) + properties + len(raw.payload)
    assert 1 + 2 + rest == 4000


@pytest.mark.parametrize("qos", [1, 2])
def test_more_than_a_message_may_have(bounded: Mosquitto, qos: int) -> None:  # 8.3: the broker's reason code
    with bounded.receiving() as receiver:
        large, small = attempt(bounded.target(qos=qos), event(1, {"changed": ["x" * 2500]}), event(2))
        assert large == Outcome(DeliveryResult.REJECTED, "mqtt:0x95", "packet too large")
        assert small.result is DeliveryResult.DELIVERED
        assert len(receiver.raw(2, seconds=1)) == 1


@pytest.mark.parametrize("qos", [1, 2])
def test_a_topic_that_one_may_not_write_to(broker: Mosquitto, qos: int) -> None:  # 8.3: like 403
    (outcome,) = attempt(broker.target(topicname=FORBIDDEN, qos=qos), event(1))
    assert outcome == Outcome(DeliveryResult.UNAUTHORIZED, "mqtt:0x87", "not authorized")


@pytest.mark.parametrize("qos", [1, 2])
def test_as_many_at_once_as_the_broker_takes(bounded: Mosquitto, qos: int) -> None:
    # The broker closes the connection of a client that sends more than five without an acknowledgement.
    outcomes = attempt(bounded.target(qos=qos), *map(event, range(200)))
    assert {each.result for each in outcomes} == {DeliveryResult.DELIVERED}


@pytest.mark.parametrize("qos", [1, 2])
def test_a_broker_that_hangs(tmp_path: Path, qos: int) -> None:  # 8.3: within the timeout of an attempt
    with mosquitto(tmp_path, MQTT5) as broker:

        async def scenario() -> None:
            async with open_sink(broker.target(qos=qos, seconds=1.5), MQTT5) as sink:
                assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
                assert broker.process
                with frozen_process(broker.process):
                    outcomes = await asyncio.gather(deliver(sink, event(2)), deliver(sink, event(3)))
                    assert {each.result for each in outcomes} == {DeliveryResult.RETRY}
                assert (await deliver(sink, event(2))).result is DeliveryResult.DELIVERED

        run(scenario)


@pytest.mark.parametrize("protocol", [MQTT3, MQTT5])
def test_a_token_is_the_password(broker: Mosquitto, protocol: str) -> None:  # SUB-305
    with socket.create_server(("127.0.0.1", 0)) as listening:
        read: list[bytes] = []

        def listen() -> None:
            connection, _ = listening.accept()
            with connection:
                read.append(connection.recv(4096))

        thread = threading.Thread(target=listen)
        thread.start()
        token = Credential("ACCESSTOKEN", token="token-as-a-password")
        target = broker.target(credential=token, seconds=3, port=listening.getsockname()[1])
        attempt(target, event(1), protocol=protocol)
        thread.join()
    user, password = login(read[0], protocol)
    assert (user, password) == ("", "token-as-a-password")
    assert token.token not in repr(target)


def login(packet: bytes, protocol: str) -> tuple[str, str]:
    """The user and password in a CONNECT packet."""
    assert packet[0] == 0x10 and packet[1] < 0x80
    assert packet[4:8] == b"MQTT" and packet[8] == {MQTT3: 4, MQTT5: 5}[protocol]
    assert packet[9] == 0b11000010  # user, password, a clean start, and no will
    at = 12 + (1 + packet[12] if protocol == MQTT5 else 0)
    fields = []
    while at < len(packet):
        (size,) = struct.unpack_from("!H", packet, at)
        fields.append(packet[at + 2 : at + 2 + size].decode())
        at += 2 + size
    client, user, password = fields
    assert client.isalnum() and len(client) <= 23
    return user, password


def test_several_events_are_sent_one_after_the_other(broker: Mosquitto) -> None:
    with broker.receiving() as receiver:

        async def scenario() -> None:
            async with open_sink(broker.target(), MQTT5) as sink:
                assert (await sink.send([event(number) for number in range(3)])).result is DeliveryResult.DELIVERED

        run(scenario)
        found = [orjson.loads(each.payload)["sequence"][:20] for each in receiver.raw(3)]
    assert [int(each) for each in found] == [0, 1, 2]


def test_an_event_that_cannot_be_written(broker: Mosquitto) -> None:
    (outcome,) = attempt(broker.target(), event(1, {"changed": [object()]}))
    assert outcome.result is DeliveryResult.REJECTED


def test_a_sink_that_was_closed(broker: Mosquitto) -> None:
    async def scenario() -> None:
        async with open_sink(replace(broker.target(topicname=TOPIC)), MQTT5) as sink:
            await sink.close()
            assert (await deliver(sink, event(1))).result is DeliveryResult.RETRY

    run(scenario)


def test_no_password_through_the_open(broker: Mosquitto) -> None:  # SUB-306: except on loopback
    with recording_server() as (address, port, read):
        uris = (f"mqtt://{HOST}:{port}", f"ws://{HOST}:{port}")
        targets = [broker.target(uri=uri, seconds=1) for uri in uris]

        async def scenario() -> None:
            for target in targets:
                async with open_sink(target, MQTT5, LocalResolver(address)) as sink:
                    assert (await deliver(sink, event(1))).code == "insecure"

        run(scenario)
    assert PASSWORD.encode() not in b"".join(read)


def test_an_idle_connection_stays(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    # A broker closes connections that were silent for one and a half times the keep-alive interval.
    monkeypatch.setattr(mqtt_link, "_KEEP_ALIVE_SECONDS", 3)
    monkeypatch.setattr(mqtt_link, "_CHECK_SECONDS", 0.2)
    names = LocalResolver()

    async def scenario() -> None:
        async with open_sink(broker.target(), MQTT5, names) as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
            await asyncio.sleep(6)
            assert (await deliver(sink, event(2))).result is DeliveryResult.DELIVERED

    run(scenario)
    assert len(names.lookups) == 1
