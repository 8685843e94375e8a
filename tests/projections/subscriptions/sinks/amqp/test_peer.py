"""The AMQP sink with a peer whose addresses say what it does: outcomes, settings, and messages on the wire."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")

from annals.projections.subscriptions.contract import Credential, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.sinks.amqp import connection
from tests.projections.subscriptions.sinks.amqp.peer import Peer, peer
from tests.support.brokers.suite import GOOD, PASSWORD, USER, LocalResolver, deliver, descriptors, event, open_sink

pytestmark = pytest.mark.uses("Node.js")


@pytest.fixture(scope="module")
def rhea() -> Iterator[Peer]:
    with peer() as made:
        yield made


@pytest.fixture(autouse=True)
def _forget(rhea: Peer) -> None:
    rhea.unsolicited_lines()


def outcome(target: SinkTarget, names: LocalResolver | None = None, count: int = 1) -> Outcome:
    """The outcome of the last of some events."""

    async def scenario() -> Outcome:
        async with open_sink(target, "AMQP", names) as sink:
            for number in range(1, count):
                await deliver(sink, event(number))
            return await deliver(sink, event(count))

    return asyncio.run(scenario())


#: What the peer does, and the outcome: section 8.3 and its table of outcomes.
OUTCOMES = [
    ("accept", DeliveryResult.DELIVERED, ""),
    ("release", DeliveryResult.RETRY, "released"),
    ("modify", DeliveryResult.RETRY, "modified"),
    ("reject", DeliveryResult.REJECTED, "rejected"),
    ("reject=amqp:decode-error", DeliveryResult.REJECTED, "amqp:decode-error"),
    ("reject=amqp:unauthorized-access", DeliveryResult.UNAUTHORIZED, "amqp:unauthorized-access"),
    ("detach=amqp:unauthorized-access", DeliveryResult.UNAUTHORIZED, "amqp:unauthorized-access"),
    ("detach=amqp:not-found", DeliveryResult.RETRY, "amqp:not-found"),
    ("detach=amqp:link:message-size-exceeded", DeliveryResult.REJECTED, "amqp:link:message-size-exceeded"),
    ("detach=amqp:link:redirect", DeliveryResult.RETRY, "amqp:link:redirect"),
    ("end=amqp:resource-limit-exceeded", DeliveryResult.RETRY, "amqp:resource-limit-exceeded"),
    ("close=amqp:connection:forced", DeliveryResult.RETRY, "amqp:connection:forced"),
    ("close=amqp:unauthorized-access", DeliveryResult.UNAUTHORIZED, "amqp:unauthorized-access"),
    ("small", DeliveryResult.REJECTED, "amqp:link:message-size-exceeded"),
    ("silent", DeliveryResult.RETRY, "timeout"),
    ("nocredit", DeliveryResult.RETRY, "timeout"),
]


@pytest.mark.parametrize(("address", "result", "code"), OUTCOMES)
def test_outcomes(
    rhea: Peer, address: str, result: DeliveryResult, code: str
) -> None:  # SUB-821: they follow from the peer's answer
    seconds = 1.0 if code == "timeout" else 10.0
    began = time.monotonic()
    found = outcome(rhea.target(address, seconds=seconds))
    assert (found.result, found.code) == (result, code)
    assert PASSWORD not in found.message  # SUB-303: the peer repeats it in its descriptions
    assert time.monotonic() - began < seconds + 10


def test_a_refusal_ends_and_the_next_attempt_connects_again(rhea: Peer) -> None:
    assert outcome(rhea.target("detach=amqp:not-found"), count=3).code == "amqp:not-found"
    assert sum("open" in line for line in rhea.unsolicited_lines()) == 3


def test_what_the_connection_and_the_link_say(rhea: Peer) -> None:  # 2.4: linkname, linkproperties, address
    settings = {"linkname": "my link", "linkproperties": {"a": "é", "b.c": "2"}}
    assert outcome(rhea.target("accept", **settings)).result is DeliveryResult.DELIVERED
    assert rhea.next("plain") == [USER, PASSWORD]  # SUB-305: SASL PLAIN
    assert rhea.next("open")["hostname"] == "broker.test"
    properties = {"a": "é", "b.c": "2"}
    assert rhea.next("attach") == {"name": "my link", "address": "accept", "properties": properties, "mode": 0}


def test_link_names_are_random_without_a_setting(rhea: Peer) -> None:  # 2.4
    for _ in range(2):
        outcome(rhea.target("accept"))
    assert rhea.next("attach")["name"] != rhea.next("attach")["name"]


def test_a_binary_message_attribute_by_attribute(rhea: Peer) -> None:  # section 7; SUB-704
    sent = event(7, whole=42, flag=True, raw=b"\x00\xff", name="Euro € 😀")

    async def scenario() -> None:
        async with open_sink(rhea.target("accept", contentmode="binary"), "AMQP") as sink:
            assert await deliver(sink, sent) == Outcome(DeliveryResult.DELIVERED)

    asyncio.run(scenario())
    message = rhea.next("message")
    assert message == {
        "id": sent.get_id(),
        "to": "accept",
        "content_type": "application/json",
        "durable": True,
        "section": 0x75,
        "properties": {
            "cloudEvents_specversion": "1.0",
            "cloudEvents_id": sent.get_id(),
            "cloudEvents_source": "https://registry.example.com",
            "cloudEvents_type": "io.xregistry.version.updated",
            "cloudEvents_subject": "/schemagroups/g/schemas/s7/versions/1",
            "cloudEvents_time": "2026-01-02T03:04:05.060007Z",  # SUB-114: no digit is lost
            "cloudEvents_xregcorrelationid": "0193e2b8",
            "cloudEvents_sequence": f"{7:020}.00",
            "cloudEvents_whole": 42,
            "cloudEvents_flag": True,
            "cloudEvents_raw": {"type": "Buffer", "data": [0, 255]},
            "cloudEvents_name": "Euro € 😀",
        },
        "body": '{"changed":["name","number7"]}',
    }


def test_types_of_attributes_in_amqp() -> None:  # SUB-704: Integer is a long, Boolean a boolean, Binary binary
    from proton import Message

    from annals.projections.subscriptions.sinks.amqp.messages import encode_message

    decoded = Message()
    decoded.decode(encode_message(event(1, whole=42, flag=True, raw=b"\x00"), "q", binary=True))
    properties: Any = decoded.properties
    types = {name: type(properties[f"cloudEvents_{name}"]) for name in ("whole", "flag", "id", "time")}
    assert types == {"whole": int, "flag": bool, "id": str, "time": str}  # Proton has other classes for other integers
    assert bytes(properties["cloudEvents_raw"]) == b"\x00"


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_a_structured_message(rhea: Peer, mode: str) -> None:  # section 7; SUB-702: without data in any mode; SUB-703
    sent = event(8, None if mode == "binary" else ...)

    async def scenario() -> None:
        async with open_sink(rhea.target("accept", contentmode=mode), "AMQP") as sink:
            assert await deliver(sink, sent) == Outcome(DeliveryResult.DELIVERED)

    asyncio.run(scenario())
    message = rhea.next("message")
    assert message["content_type"] == "application/cloudevents+json; charset=UTF-8"
    assert (message["id"], message["to"], message["section"]) == (sent.get_id(), "accept", 0x75)
    assert not message.get("properties")
    body = json.loads(message["body"])
    assert body["time"] == "2026-01-02T03:04:05.060008Z"
    assert ("data" in body) == (mode == "structured")
    assert None not in body.values()


def test_data_that_is_not_json(rhea: Peer) -> None:  # SUB-703: as data_base64, in binary mode as it is
    sent = event(9, b"\x00caf\xc3\xa9", datacontenttype="application/octet-stream")

    async def scenario() -> None:
        for mode in ("structured", "binary"):
            async with open_sink(rhea.target("accept", contentmode=mode), "AMQP") as sink:
                assert await deliver(sink, sent) == Outcome(DeliveryResult.DELIVERED)

    asyncio.run(scenario())
    body = json.loads(rhea.next("message")["body"])
    assert body["data_base64"] == "AGNhZsOp"
    assert "data" not in body
    assert rhea.next("message")["body"] == "\x00café"


def test_data_that_cannot_be_written_is_rejected(rhea: Peer) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    async def scenario() -> None:
        for data in (object(), {"a": float("nan"), "b": object()}, deep):
            for mode in ("structured", "binary"):
                async with open_sink(rhea.target("accept", contentmode=mode), "AMQP") as sink:
                    assert (await deliver(sink, event(1, data))).result is DeliveryResult.REJECTED

    asyncio.run(scenario())


def test_settled_messages_count_once_they_are_written(rhea: Peer) -> None:  # SUB-709: at most once
    assert outcome(rhea.target("silent", sendersettlementmode="settled"), count=50) == Outcome(DeliveryResult.DELIVERED)
    assert rhea.next("attach")["mode"] == 1
    assert [rhea.line("message")["settled"] for _ in range(50)] == [True] * 50


def test_settled_messages_wait_for_the_socket(rhea: Peer) -> None:  # SUB-709: handed to the socket, not to a buffer
    large = event(2, {"text": "x" * 20_000_000})  # more than a socket holds

    async def scenario() -> None:
        async with open_sink(rhea.target("silent", sendersettlementmode="settled", seconds=2.0), "AMQP") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
            rhea.process.send_signal(signal.SIGSTOP)
            try:
                assert (await deliver(sink, large)).result is DeliveryResult.RETRY
                began = time.monotonic()
                await sink.close()
                assert time.monotonic() - began < 20  # closing does not wait for a peer that does not read
            finally:
                rhea.process.send_signal(signal.SIGCONT)

    asyncio.run(scenario())


def test_settled_messages_wait_for_credit(rhea: Peer) -> None:  # SUB-709: not handed to the socket, so not delivered
    found = outcome(rhea.target("nocredit", sendersettlementmode="settled", seconds=1.0))
    assert (found.result, found.code) == (DeliveryResult.RETRY, "timeout")


def test_a_token_is_no_credential_here(rhea: Peer) -> None:  # SUB-305: AMQP has PLAIN
    found = outcome(rhea.target("accept", credential=Credential("ACCESSTOKEN", token="marker")))
    assert found.result is DeliveryResult.UNAUTHORIZED
    assert rhea.unsolicited_lines() == []


def test_anonymous_connections(rhea: Peer) -> None:  # without a credential: SASL ANONYMOUS
    assert outcome(rhea.target("accept", credential=None)) == Outcome(DeliveryResult.DELIVERED)
    assert not any("plain" in line for line in rhea.unsolicited_lines())


def test_a_password_does_not_go_through_the_open() -> None:  # SUB-306: except on loopback
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the system chooses the local address
        except OSError:
            pytest.skip("this machine has no address but loopback")
        own = probe.getsockname()[0]
    with peer(own) as outside:
        found = outcome(outside.target("accept"), LocalResolver(address=own))
        assert found.result is DeliveryResult.UNAUTHORIZED
        assert not any("plain" in line for line in outside.unsolicited_lines())
        assert (
            outcome(outside.target("accept", credential=None), LocalResolver(address=own)).result
            is DeliveryResult.DELIVERED
        )


def test_a_sink_that_is_closed_while_it_connects(rhea: Peer) -> None:  # nothing is left open
    class Slow(LocalResolver):
        async def resolve(self, host: str, port: int) -> str:
            await asyncio.sleep(0.3)
            return await super().resolve(host, port)

    async def scenario() -> None:
        async with open_sink(rhea.target("accept"), "AMQP", Slow()) as sink:
            sending = asyncio.create_task(deliver(sink, event(1)))
            await asyncio.sleep(0.1)
            await sink.close()
            assert (await sending).result is DeliveryResult.RETRY
            assert (await deliver(sink, event(2))).result is DeliveryResult.RETRY

    before = descriptors()
    asyncio.run(scenario())
    assert descriptors() <= before
    assert not any("message" in line for line in rhea.unsolicited_lines())


def test_a_late_answer_does_no_harm(rhea: Peer) -> None:
    async def scenario() -> None:
        async with open_sink(rhea.target("accept", seconds=3.0), "AMQP") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
            rhea.process.send_signal(signal.SIGSTOP)
            try:
                assert (await deliver(sink, event(2))).code == "timeout"
            finally:
                rhea.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.3)
            for number in range(3, 10):
                assert (await deliver(sink, event(number))).result is DeliveryResult.DELIVERED

    asyncio.run(scenario())
    assert sum("open" in line for line in rhea.unsolicited_lines()) == 1


def test_a_quiet_connection_is_kept() -> None:  # AMQP 2.4.5: heartbeats for a peer with an idle timeout
    with peer(silence=4000) as strict:

        async def scenario() -> None:
            async with open_sink(strict.target("accept"), "AMQP") as sink:
                assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
                await asyncio.sleep(9)
                assert (await deliver(sink, event(2))).result is DeliveryResult.DELIVERED

        asyncio.run(scenario())
        assert sum("open" in line for line in strict.unsolicited_lines()) == 1


def test_a_peer_that_falls_silent_is_left(rhea: Peer, monkeypatch: pytest.MonkeyPatch) -> None:  # AMQP 2.4.5
    monkeypatch.setattr(connection, "_IDLE_SECONDS", 1.0)

    async def scenario() -> None:
        async with open_sink(rhea.target("accept", seconds=4.0), "AMQP") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
            rhea.process.send_signal(signal.SIGSTOP)
            try:
                found = await deliver(sink, event(2))
                assert (found.result, found.code) == (DeliveryResult.RETRY, "amqp:resource-limit-exceeded")
            finally:
                rhea.process.send_signal(signal.SIGCONT)
            assert (await deliver(sink, event(2))).result is DeliveryResult.DELIVERED

    asyncio.run(scenario())


#: What a server that does not speak AMQP may send.
NONSENSE = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"AMQP\x00\x00\x09\x01",
    b"AMQP\x03\x01\x00\x00" + b"\xff" * 64,
    b"AMQP\x03\x01\x00\x00\x00\x00\x00\x08\x02\x01\x00\x00",
    b"AMQP\x03\x01\x00\x00" + b"\x00\x00\x00\x10\x02\x01\x00\x00\x00S\xc0" + b"\xc0\xff\xff\xff\xff",
    b"AMQP\x03\x01\x00\x00" + os.urandom(4096),
    b"",
]


@pytest.mark.parametrize("said", NONSENSE)
@pytest.mark.parametrize("scheme", ["amqp", "ws"])
def test_servers_that_do_not_speak_amqp(said: bytes, scheme: str) -> None:  # a sink returns only outcomes
    async def scenario() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(said)
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            target = SinkTarget("s1", f"{scheme}://broker.test:{port}", {"address": "a"}, credential=GOOD, timeout=3)
            async with open_sink(target, "AMQP") as sink:
                found = await deliver(sink, event(1))
                assert found.result is DeliveryResult.RETRY, found
                assert found.code != "timeout"

    asyncio.run(scenario())
