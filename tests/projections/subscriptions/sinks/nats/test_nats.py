"""Tests of NATS only: headers, streams that acknowledge, limits and permissions, WebSockets, tokens, TLS."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from annals.domain.subscriptions.sink_uris import NATS
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.contract import DELIVERED, STORED, Credential, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.service import DeliveryService
from annals.projections.subscriptions.sinks.nats import connection
from tests.support.brokers.nats import FORBIDDEN, SUBJECT, Nats, Raw, nats_server
from tests.support.brokers.suite import (
    HOST,
    PASSWORD,
    USER,
    LocalResolver,
    deliver,
    event,
    frozen_process,
    open_sink,
    recording_server,
    run,
)
from tests.support.delivery_rig import Rig, until
from tests.support.receivers import listener

pytestmark = pytest.mark.uses("NATS")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    with nats_server(tmp_path_factory.mktemp("nats"), "max_payload: 3000") as sink_broker:
        yield sink_broker


@pytest.fixture
def streaming(tmp_path: Path) -> Iterator[Nats]:
    """A server with JetStream, without a stream."""
    with nats_server(tmp_path, f'jetstream: {{store_dir: "{tmp_path / "store"}"}}') as sink_broker:
        yield sink_broker


def attempt(target: SinkTarget, *events: Any) -> list[Outcome]:
    """The outcomes of events that are sent one after the other."""
    outcomes: list[Outcome] = []

    async def scenario() -> None:
        async with open_sink(target, NATS) as sink:
            for each in events:
                outcomes.append(await deliver(sink, each))  # noqa: PERF401

    run(scenario)
    return outcomes


def one(server: Nats, target: SinkTarget, sent: Any) -> Raw:
    """The message of a delivered event."""
    with server.receiving() as receiver:
        assert attempt(target, sent) == [DELIVERED]
        (raw,) = receiver.raw(1)
    return raw


def test_binary_mode_by_the_table(server: Nats) -> None:  # §7, NATS binary; SUB-701: percent-encoded
    sent = event(1, {"changed": []}, time=datetime(2026, 1, 2, 3, 4, 5, 6, UTC), subject='/Euro € 😀"%', flag=True)
    raw = one(server, server.target(contentmode="binary"), sent)
    assert raw.headers == {
        "ce-specversion": "1.0",
        "ce-id": "0193e2b8.1.xregistry.version.updated",
        "ce-source": "https://registry.example.com",
        "ce-type": "io.xregistry.version.updated",
        "ce-subject": "/Euro%20%E2%82%AC%20%F0%9F%98%80%22%25",
        "ce-time": "2026-01-02T03:04:05.000006Z",
        "ce-xregcorrelationid": "0193e2b8",
        "ce-sequence": "00000000000000000001.00",
        "ce-datacontenttype": "application/json",
        "ce-flag": "true",
    }
    assert (raw.payload, raw.reply) == (b'{"changed":[]}', "")


def test_structured_mode_by_the_table(server: Nats) -> None:  # §7, NATS structured
    raw = one(server, server.target(), event(1))
    assert raw.headers == {"Content-Type": "application/cloudevents+json"}
    assert orjson.loads(raw.payload)["time"] == "2026-01-02T03:04:05.060001Z"


def test_delivery_without_a_subscriber(server: Nats) -> None:  # SUB-709: at most once
    assert attempt(server.target(subject="nobody.listens"), event(1)) == [DELIVERED]


def test_web_sockets(server: Nats) -> None:
    sent = event(1, {"changed": ["x" * 2000]})
    raw = one(server, server.target(uri=f"ws://{HOST}:{server.web}"), sent)
    assert orjson.loads(raw.payload)["data"] == sent.get_data()


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_more_than_a_message_may_have(server: Nats, contentmode: str) -> None:  # 8.3: rejected; headers count
    large = event(1, {"changed": ["x" * 2200]}, subject="/" + "y" * 800)

    async def scenario() -> None:
        async with open_sink(server.target(contentmode=contentmode), NATS) as sink:
            outcomes = await asyncio.gather(*(deliver(sink, each) for each in (large, event(2), large, event(3))))
            results = [each.result for each in outcomes]
            assert results == [
                DeliveryResult.REJECTED,
                DeliveryResult.DELIVERED,
                DeliveryResult.REJECTED,
                DeliveryResult.DELIVERED,
            ]

    run(scenario)


def test_a_subject_that_one_may_not_publish_to(server: Nats) -> None:  # 8.3: like 403
    async def scenario() -> None:
        async with open_sink(server.target(subject=FORBIDDEN), NATS) as sink:
            outcomes = await asyncio.gather(*(deliver(sink, event(number)) for number in range(50)))
            assert {each.result for each in outcomes} == {DeliveryResult.UNAUTHORIZED}
            assert (await deliver(sink, event(51))).result is DeliveryResult.UNAUTHORIZED

    run(scenario)


def test_tokens(tmp_path: Path) -> None:  # SUB-305: NATS token
    with nats_server(tmp_path, login='token: "a-good-token"') as server:
        good = Credential("ACCESSTOKEN", token="a-good-token")
        assert attempt(server.target(credential=good), event(1)) == [DELIVERED]
        for bad in (Credential("ACCESSTOKEN", token="marker-of-a-bad-token"), None):
            (outcome,) = attempt(server.target(credential=bad), event(1))
            assert outcome.result is DeliveryResult.UNAUTHORIZED
            assert "marker" not in outcome.message


def test_a_server_that_hangs(tmp_path: Path) -> None:  # 8.3: within the timeout of an attempt
    with nats_server(tmp_path) as server:

        async def scenario() -> None:
            async with open_sink(server.target(seconds=4), NATS) as sink:
                assert await deliver(sink, event(1)) == DELIVERED
                with frozen_process(server.processes[0]):
                    outcomes = await asyncio.gather(deliver(sink, event(2)), deliver(sink, event(3)))
                    assert {each.result for each in outcomes} == {DeliveryResult.RETRY}
                assert await deliver(sink, event(2)) == DELIVERED

        run(scenario)


def test_a_send_that_is_cancelled_spoils_no_other(server: Nats) -> None:
    async def scenario() -> None:
        async with open_sink(server.target(), NATS) as sink:
            assert await deliver(sink, event(1)) == DELIVERED
            for number in range(20):
                sending = asyncio.create_task(sink.send([event(number)]))
                await asyncio.sleep(0)
                sending.cancel()
                assert await deliver(sink, event(number)) == DELIVERED

    run(scenario)


# --- streams ---------------------------------------------------------------------------------------------------------


def test_a_stream_acknowledges(streaming: Nats) -> None:  # SUB-709: at least once if a stream stores messages
    streaming.add_stream()
    assert attempt(streaming.target(), *map(event, range(5))) == [STORED] * 5
    assert streaming.stored() == 5


def test_the_status_says_what_an_acknowledgement_is_worth(streaming: Nats, tmp_path: Path) -> None:
    # SUB-709: at most once without a stream, at least once with one; the last acknowledgement counts
    rig = Rig(f"sqlite:///{tmp_path / 'annals.db'}")
    login = {"credentialtype": "PLAIN", "identifier": USER, "secret": PASSWORD}
    nats: dict[str, Any] = {"sink": f"nats://127.0.0.1:{streaming.plain}", "protocol": "NATS", "sinkcredential": login}
    service = DeliveryService(
        rig.url, DeliveryPorts(DestinationGuard(allow_list="127.0.0.1", allows_plaintext=True), policy="off")
    )

    def status() -> dict[str, Any]:
        return dict(service.deliveries.status(rig.subscription()))

    async def scenario() -> None:
        rig.subscribe(subject=SUBJECT, **nats)
        rig.groups("a")
        await until(lambda: "lastsuccess" in status())
        assert status()["guarantee"] == "atmostonce"
        await asyncio.to_thread(streaming.add_stream)
        rig.subscribe(subject=SUBJECT, **nats)  # an update reconnects, and asks for a stream again
        rig.groups("b")
        await until(lambda: status()["guarantee"] == "atleastonce")
        await asyncio.to_thread(streaming.remove_stream)
        rig.groups("c")
        await until(lambda: status()["guarantee"] == "atmostonce")

    rig.services.append(service)
    service.start()
    try:
        asyncio.run(scenario())
    finally:
        service.stop()
        rig.close()


def test_a_full_stream(streaming: Nats) -> None:  # 8.3: retry; without a stream, the message would be lost silently
    streaming.add_stream(max_msgs=2, discard="new")
    outcomes = attempt(streaming.target(), *map(event, range(3)))
    assert [each.result for each in outcomes] == [
        DeliveryResult.DELIVERED,
        DeliveryResult.DELIVERED,
        DeliveryResult.RETRY,
    ]
    assert outcomes[2].code == "jetstream:10077"


def test_more_than_a_stream_takes(streaming: Nats) -> None:  # 8.3: rejected
    streaming.add_stream(max_msg_size=2000)
    outcomes = attempt(streaming.target(), event(1, {"changed": ["x" * 3000]}), event(2))
    assert [each.result for each in outcomes] == [DeliveryResult.REJECTED, DeliveryResult.DELIVERED]


def test_a_forbidden_subject_of_a_stream(streaming: Nats) -> None:
    streaming.add_stream()
    (outcome,) = attempt(streaming.target(subject=FORBIDDEN, seconds=5), event(1))
    assert outcome.result is DeliveryResult.UNAUTHORIZED


@pytest.mark.parametrize(
    "rights", ['publish: {deny: ["$JS.API.>"]}', 'subscribe: {deny: ["_INBOX.>"]}', 'publish: {allow: ["annals.>"]}']
)
def test_who_may_not_ask_for_a_stream(
    tmp_path: Path, rights: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # at most once, and without a delay
    users = (
        f'users: [{{user: owner, password: own}}, {{user: {USER}, password: "{PASSWORD}", permissions: {{{rights}}}}}]'
    )
    with nats_server(tmp_path, f'jetstream: {{store_dir: "{tmp_path / "store"}"}}', users) as server:
        server.add_stream("owner", "own")
        # An answer that does not come would be waited for longer than the attempt may take.
        monkeypatch.setattr(connection, "_REQUEST_SECONDS", 600.0)
        assert attempt(server.target(), event(1), event(2)) == [DELIVERED] * 2
        assert server.stored("owner", "own") == 2


# --- TLS -------------------------------------------------------------------------------------------------------------


def test_tls_is_insisted_on(server: Nats) -> None:  # SUB-306, 906: no password for a server without TLS
    with socket.create_server(("127.0.0.1", 0)) as listening:
        read: list[bytes] = []

        def listen() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b'INFO {"server_id":"x","max_payload":1000,"headers":true}\r\n')
                while part := connection.recv(4096):
                    read.append(part)

        thread = threading.Thread(target=listen)
        thread.start()
        (outcome,) = attempt(server.target(tls=True, seconds=3, port=listening.getsockname()[1]), event(1))
        thread.join()
    assert outcome.result is DeliveryResult.RETRY
    assert PASSWORD.encode() not in b"".join(read)
    assert read == []


def test_a_password_that_the_server_repeats(server: Nats) -> None:  # SUB-303: no secret in any text
    repeated = f"-ERR 'no {PASSWORD} {base64.b64encode(PASSWORD.encode()).decode()}'\r\n".encode()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","headers":true}\r\n' + repeated)
        while await reader.read(4096):
            pass
        writer.close()

    with listener(refuse) as port:
        (outcome,) = attempt(server.target(seconds=10, port=port), event(1))
    assert outcome == Outcome(DeliveryResult.RETRY, "nats", "no *** ***")


def test_other_servers_that_a_server_names_are_not_tried(server: Nats) -> None:
    # SUB-901: only checked addresses are used
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as first:
        other.settimeout(1)
        named = f'"connect_urls":["127.0.0.1:{other.getsockname()[1]}"]'

        def listen() -> None:
            connection, _ = first.accept()
            with connection:
                connection.sendall(b'INFO {"server_id":"x","max_payload":10000,"headers":true,%b}\r\n' % named.encode())
                connection.recv(4096)

        thread = threading.Thread(target=listen)
        thread.start()
        (outcome,) = attempt(server.target(seconds=3, port=first.getsockname()[1]), event(1))
        thread.join()
        assert outcome.result is DeliveryResult.RETRY
        with pytest.raises(TimeoutError):
            other.accept()


def test_no_password_through_the_open(server: Nats) -> None:  # SUB-306: except on loopback
    with recording_server(b'INFO {"server_id":"x","max_payload":1000,"headers":true}\r\n') as (address, port, read):
        uris = (f"nats://{HOST}:{port}", f"ws://{HOST}:{port}")
        targets = [server.target(uri=uri, seconds=1) for uri in uris]

        async def scenario() -> None:
            for target in targets:
                async with open_sink(target, NATS, LocalResolver(address)) as sink:
                    assert (await deliver(sink, event(1))).code == "insecure"

        run(scenario)
    assert PASSWORD.encode() not in b"".join(read)


def test_the_answer_that_is_waited_for_comes_behind_the_message(server: Nats) -> None:
    # SUB-709: an earlier answer does not count
    with socket.create_server(("127.0.0.1", 0)) as listening:
        read: list[str] = []

        def listen() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb", buffering=0) as lines:
                lines.write(b'INFO {"server_id":"x","max_payload":10000,"headers":true}\r\n')
                for line in lines:
                    verb, *rest = line.decode().split()[:2] or [""]
                    read.append(" ".join((verb, *rest)))
                    if verb == "PING":
                        lines.write(b"PONG\r\n")
                    elif rest and rest[0].startswith("$JS."):
                        lines.write(b"-ERR 'Permissions Violation for Publish to \"%b\"'\r\n" % rest[0].encode())

        thread = threading.Thread(target=listen)
        thread.start()
        outcome = attempt(server.target(seconds=3, port=listening.getsockname()[1]), event(1))
        thread.join()
    assert outcome == [DELIVERED]
    last = len(read) - read[::-1].index("PING")
    assert "HPUB annals.changes" in read[:last]
