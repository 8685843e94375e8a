"""Deliveries to a real Kafka broker."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent

from annals.projections.outgoing.resolver import ForbiddenAddress
from annals.projections.subscriptions.contract import Credential, DeliveryResult, Outcome, SinkTarget
from tests.support.brokers.kafka import (
    INSIDE,
    LARGEST,
    READER,
    Kafka,
    as_cloudevent,
    kafka,
    next_records,
    token,
    topic_consumer,
)
from tests.support.brokers.suite import (
    GOOD,
    HOST,
    PASSWORD,
    Broker,
    Contract,
    LocalResolver,
    comparable,
    deliver,
    deliver_with_retries,
    event,
    open_sink,
    run,
    silent_server,
)
from tests.support.ports import free_port

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as running:
        yield running


class TestKafka(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls, broker: Kafka) -> Broker:
        return broker


def outcomes(target: SinkTarget, *events: CloudEvent, names: LocalResolver | None = None) -> list[Outcome]:
    """The outcomes of events that are sent at the same time, through one sink."""
    found: list[Outcome] = []

    async def scenario() -> None:
        async with open_sink(target, "KAFKA", names) as sink:
            found.extend(await asyncio.gather(*(deliver(sink, each) for each in events)))

    run(scenario)
    return found


def records(broker: Kafka, count: int, seconds: float = 60) -> list[Any]:
    """The records of the newest topic."""
    with topic_consumer(broker.own(), broker.topic) as consumer:
        return next_records(consumer, count, seconds)


def exchanged(broker: Kafka, *events: CloudEvent, contentmode: str = "structured", **settings: Any) -> list[Any]:
    """The records of events that were delivered to a new topic."""
    broker.fresh()
    found = outcomes(broker.target(contentmode=contentmode, **settings), *events)
    assert {each.result for each in found} == {DeliveryResult.DELIVERED}, found
    return records(broker, len(events))


def test_structured_records(broker: Kafka) -> None:  # § 7: the content type; no attributes in headers
    (record,) = exchanged(broker, event(1))
    assert record.headers == [("content-type", b"application/cloudevents+json; charset=UTF-8")]


def test_binary_records(broker: Kafka) -> None:  # § 7: ce_ headers in UTF-8, data as the value
    given = event(
        1, {"changed": ["näme"]}, subject="/g/Euro € 😀", flag=True, count=7, dataschema="https://example.com/s"
    )
    (record,) = exchanged(broker, given, contentmode="binary")
    assert record.value == '{"changed":["näme"]}'.encode()
    assert dict(record.headers) == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": b"0193e2b8.1.xregistry.version.updated",
        "ce_source": b"https://registry.example.com",
        "ce_type": b"io.xregistry.version.updated",
        "ce_subject": "/g/Euro € 😀".encode(),
        "ce_time": b"2026-01-02T03:04:05.060001Z",
        "ce_xregcorrelationid": b"0193e2b8",
        "ce_sequence": b"00000000000000000001.00",
        "ce_dataschema": b"https://example.com/s",
        "ce_flag": b"true",
        "ce_count": b"7",
    }


@pytest.mark.parametrize(
    ("contenttype", "data", "value"),
    [
        ("application/json", [1, "é"], '[1,"é"]'.encode()),
        ("application/json", "text", b'"text"'),
        ("application/xregistry+json; charset=utf-8", {"a": None}, b'{"a":null}'),
        ("text/plain", "é", "é".encode()),
        ("application/octet-stream", b"\xff\x00", b"\xff\x00"),
        ("application/json", b'{"as": "given"}', b'{"as": "given"}'),
    ],
)
def test_data_of_binary_records(broker: Kafka, contenttype: str, data: Any, value: bytes) -> None:
    # SUB-710: the value is the data in its own format.
    (record,) = exchanged(broker, event(1, data, datacontenttype=contenttype), contentmode="binary")
    assert record.value == value


def test_data_in_json(broker: Kafka) -> None:  # SUB-703: bytes as data_base64, and never both
    found = [
        as_cloudevent(record).event for record in exchanged(broker, event(1, b"\xff\x00", datacontenttype="image/png"))
    ]
    assert found[0].get_data() == b"\xff\x00"
    (record,) = exchanged(broker, event(1, None))
    assert b"data" not in record.value


@pytest.mark.parametrize(
    ("extractor", "key"),
    [
        ("subject", "/g/é".encode()),
        ("type", b"io.xregistry.version.updated"),
        ("flag", b"true"),
        ("time", b"2026-01-02T03:04:05.060001Z"),
        ("absent", None),
        ("none", None),
    ],
)
@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_keys(broker: Kafka, extractor: str, key: bytes | None, contentmode: str) -> None:
    # SUB-705: the key is the value of an attribute; without the attribute there is no key; the event does not change.
    given = event(1, subject="/g/é", flag=True)
    (record,) = exchanged(broker, given, contentmode=contentmode, partitionkeyextractor=extractor)
    assert record.key == key
    assert as_cloudevent(record).event.get_attributes().keys() == given.get_attributes().keys()


def test_one_key_has_one_partition(broker: Kafka) -> None:  # SUB-705, SUB-811: a key's records are in one order
    broker.fresh(partitions=4)
    found = outcomes(broker.target(), *(event(number, subject=f"/g{number % 8}") for number in range(64)))
    assert {each.result for each in found} == {DeliveryResult.DELIVERED}
    places = {(record.key, record.partition) for record in records(broker, 64)}
    assert len(places) == 8
    assert len({partition for _, partition in places}) > 1


@pytest.mark.parametrize("acks", ["0", "1", "all", "-1"])
def test_acknowledgements(broker: Kafka, acks: str) -> None:
    # SUB-709: each setting delivers; closing the sink loses no record, also without acknowledgements.
    assert len(exchanged(broker, *map(event, range(20)), acks=acks)) == 20


def test_nothing_is_delivered_at_most_once_without_a_connection(broker: Kafka) -> None:  # SUB-709: handed to a socket
    target = broker.target(acks="0", seconds=2, port=free_port())
    assert [each.result for each in outcomes(target, event(1))] == [DeliveryResult.RETRY]


@pytest.mark.parametrize("acks", ["1", "all"])
def test_records_that_are_too_large(broker: Kafka, acks: str) -> None:
    # 8.3: like 400; it affects neither the records in the same request nor later ones.
    large = event(1, {"changed": ["x" * 2 * LARGEST]})
    larger = event(2, {"changed": ["x" * (2 << 20)]})

    async def scenario() -> None:
        async with open_sink(broker.target(acks=acks), "KAFKA") as sink:
            given = [event(3), large, larger, event(4)]
            found = await asyncio.gather(*(deliver(sink, each) for each in given))
            assert [each.code for each in found] == ["", *["kafka:message-size-too-large"] * 2, ""], found
            assert [each.result for each in found[1:3]] == [DeliveryResult.REJECTED] * 2
            assert (await deliver(sink, event(5))).result is DeliveryResult.DELIVERED

    broker.fresh()
    run(scenario)
    assert sorted(as_cloudevent(record).event.get_id() for record in records(broker, 3)) == [
        event(number).get_id() for number in (3, 4, 5)
    ]


def test_requests_that_are_too_large_are_split(broker: Kafka) -> None:
    # 8.3: a record is judged by its own size, not by those that share its request.
    broker.fresh(1, **{"max.message.bytes": "20000"})
    given = [event(number, {"changed": ["x" * 5000]}) for number in range(100)]
    found = outcomes(broker.target(), *given)
    assert {each.result for each in found} == {DeliveryResult.DELIVERED}
    assert {as_cloudevent(record).event.get_id() for record in records(broker, 100)} == {
        each.get_id() for each in given
    }


def test_an_event_that_cannot_be_written(broker: Kafka) -> None:  # 8.3: rejected, not retried
    (found,) = outcomes(broker.target(contentmode="binary"), event(1, subject="\ud800"))
    assert found.result is DeliveryResult.REJECTED


class Some(LocalResolver):
    """Resolves some names only. unknown: names without an address. refused: names with a forbidden address."""

    def __init__(self, unknown: Sequence[str] = (), refused: Sequence[str] = ()) -> None:
        super().__init__()
        self._unknown, self._refused = unknown, refused

    async def resolve(self, host: str, port: int) -> str:
        address = await super().resolve(host, port)
        if host in self._refused:
            raise ForbiddenAddress("the sink's address is none that may be sent to")
        if host in self._unknown:
            raise OSError("no such name")
        return address


def test_brokers_that_others_name_are_checked(broker: Kafka) -> None:
    # SUB-901: the resolver also checks the host that a bootstrap server advertises; it is refused at once.
    broker.fresh()
    target = broker.target(credential=None, port=broker.ports["INNER"])
    names = Some(refused=[INSIDE])
    began = time.monotonic()
    (found,) = outcomes(target, event(1), names=names)
    assert (found.result, found.code) == (DeliveryResult.RETRY, "unreachable")
    assert "127.0.0.1" not in found.message  # SUB-904: no internal address
    assert time.monotonic() - began < 5
    assert {host for host, _ in names.lookups} == {HOST, INSIDE}
    assert records(broker, 1, seconds=0.5) == []
    # If the host is permitted, the sink connects to the resolver's address.
    assert outcomes(target, event(1))[0].result is DeliveryResult.DELIVERED


def test_a_broker_name_without_an_address(broker: Kafka) -> None:  # 8.5: the owner learns the reason
    broker.fresh()
    target = broker.target(credential=None, seconds=5, port=broker.ports["INNER"])
    (found,) = outcomes(target, event(1), names=Some(unknown=[INSIDE]))
    assert (found.code, found.message) == ("connection", "the host has no address")


def test_all_bootstrap_servers_are_checked(broker: Kafka) -> None:  # SUB-901: if one is refused, so is the sink
    target = broker.target()
    several = replace(target, uri=f"{target.uri},refused.test:9092")
    (found,) = outcomes(several, event(1), names=Some(refused=["refused.test"]))
    assert (found.result, found.code) == (DeliveryResult.RETRY, "unreachable")


def test_one_bootstrap_server_is_enough(broker: Kafka) -> None:  # § 2.5: others may be down or unknown
    target = broker.target()
    rest = target.uri.removeprefix("kafka://")
    several = replace(target, uri=f"kafka://{HOST}:{free_port()},unknown.test:1,{rest}/ignored")
    assert outcomes(several, event(1), names=Some(unknown=["unknown.test"]))[0].result is DeliveryResult.DELIVERED


def test_a_channel_without_tls(broker: Kafka) -> None:  # SUB-306: no credential leaves the machine on it
    elsewhere = LocalResolver(address="192.0.2.1")
    (found,) = outcomes(broker.target(), event(1), names=elsewhere)
    assert (found.result, found.code) == (DeliveryResult.UNAUTHORIZED, "insecure")


def test_a_name_without_an_address(broker: Kafka) -> None:  # 8.3: a connection error
    began = time.monotonic()
    (found,) = outcomes(broker.target(), event(1), names=Some(unknown=[HOST]))
    assert (found.result, found.code) == (DeliveryResult.RETRY, "connection")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("scheme", ["plaintext", "PLAINTEXT", "Kafka"])
def test_schemes_without_tls(broker: Kafka, scheme: str) -> None:  # § 2.5: the bootstrap form, in any case
    target = broker.target(credential=None)
    uri = f"{scheme}://127.0.0.1:{broker.ports['OWN']}"
    assert outcomes(replace(target, uri=uri), event(1))[0].result is DeliveryResult.DELIVERED


@pytest.mark.parametrize("scheme", ["SSL", "sasl_ssl"])
def test_schemes_with_tls(broker: Kafka, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # § 2.5: whether there is a credential decides about SASL, the scheme about TLS.
    monkeypatch.setenv("SSL_CERT_FILE", str(broker.ca))
    for credential, listener in ((None, "TLS"), (GOOD, "SASLTLS")):
        target = broker.target(tls=True, credential=credential)
        uri = f"{scheme}://{HOST}:{broker.ports[listener]}"
        assert outcomes(replace(target, uri=uri), event(1))[0].result is DeliveryResult.DELIVERED


def test_errors_of_failed_connections(broker: Kafka) -> None:  # 8.5: the owner learns the reason
    cases = {"tls": broker.target(tls=True), "ECONNREFUSED": broker.target(seconds=1, port=free_port())}
    for code, target in cases.items():
        (found,) = outcomes(target, event(1))
        assert (found.result, found.code) == (DeliveryResult.RETRY, code)
        assert found.message


def test_tokens(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:  # SUB-305: OAUTHBEARER
    monkeypatch.setenv("SSL_CERT_FILE", str(broker.ca))

    def attempt(text: str) -> DeliveryResult:
        credential = Credential("REFRESHTOKEN", token=text)
        (found,) = outcomes(broker.target(tls=True, credential=credential), event(1))
        assert text not in f"{found}"  # SUB-303: no secret in any text
        return found.result

    def refused(text: str) -> bool:
        # A busy broker may hang up before its reason is read; then a later attempt gets it.
        results = (attempt(text) for _ in range(5))
        return next(result for result in results if result is not DeliveryResult.RETRY) is DeliveryResult.UNAUTHORIZED

    assert attempt(token("annals")) is DeliveryResult.DELIVERED
    assert refused(token("annals", lifetime=-60))
    assert refused("no token at all")


def test_a_user_who_may_not_write(broker: Kafka) -> None:  # 8.3: like 403
    (found,) = outcomes(broker.target(credential=READER), event(1))
    assert (found.result, found.code) == (DeliveryResult.UNAUTHORIZED, "kafka:topic-authorization-failed")


def test_secrets_are_not_logged(broker: Kafka, caplog: pytest.LogCaptureFixture) -> None:  # SUB-303, SUB-916: logs
    caplog.set_level(logging.DEBUG)
    outcomes(broker.target(), event(1))
    outcomes(broker.target(credential=Credential("PLAIN", identifier="annals", secret="marker-9c")), event(1))
    assert PASSWORD not in caplog.text
    assert "marker-9c" not in caplog.text


def test_a_topic_that_is_not_there_yet(broker: Kafka) -> None:  # 8.3: 404 is retried
    target = broker.target(seconds=3, topicname="comes-later")

    async def scenario() -> None:
        async with open_sink(target, "KAFKA") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.RETRY
            await asyncio.to_thread(broker.make, "comes-later")
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED

    run(scenario)


def test_a_topic_that_is_deleted(broker: Kafka) -> None:
    # SUB-806: the client's search for its topic does not block the event loop.
    topic = broker.fresh()
    target = broker.target(seconds=3)
    slowest = 0.0

    async def beat() -> None:
        nonlocal slowest
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            slowest = max(slowest, time.monotonic() - began)

    async def scenario() -> None:
        async with open_sink(target, "KAFKA") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
            await asyncio.to_thread(broker.delete, topic)
            beating = asyncio.create_task(beat())
            for number in range(2):
                began = time.monotonic()
                assert (await deliver(sink, event(number))).result is DeliveryResult.RETRY
                assert time.monotonic() - began < target.timeout + 10
            beating.cancel()

    run(scenario)
    assert slowest < 2


@pytest.mark.long
def test_a_credential_that_is_refused_later(broker: Kafka) -> None:
    # 8.3, SUB-806: an open sink reports the refusal, and its client stops retrying.
    broker.fresh()
    target = broker.target(seconds=8)

    async def scenario() -> None:
        async with open_sink(target, "KAFKA") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
            await asyncio.to_thread(broker.restart, "another password")
            try:
                found = await deliver_with_retries(sink, event(2), broker.slow)
                assert found.result is DeliveryResult.UNAUTHORIZED, found
                await asyncio.sleep(0.2)
                assert [thread.name for thread in threading.enumerate() if "kafka" in thread.name.lower()] == []
            finally:
                await asyncio.to_thread(broker.restart, PASSWORD)
            while (last := await deliver(sink, event(2))).result is DeliveryResult.RETRY:
                await asyncio.sleep(0.2)
            assert last.result is DeliveryResult.DELIVERED

    run(scenario)


def test_dead_brokers_do_not_block_other_sinks(broker: Kafka) -> None:  # SUB-806: not even many silent ones
    broker.fresh()

    async def scenario() -> None:
        dead = [broker.target(seconds=10, port=port, tls=bool(number % 2)) for number in range(20)]
        sinks = [open_sink(target, "KAFKA") for target in dead]
        opens = [await each.__aenter__() for each in sinks]
        waiting = [asyncio.create_task(deliver(sink, event(1))) for sink in opens]
        await asyncio.sleep(0.2)
        began = time.monotonic()
        async with open_sink(broker.target(), "KAFKA") as sink:
            assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
        assert time.monotonic() - began < 8, "the attempts at the silent ones still run"
        assert {(await each).result for each in waiting} == {DeliveryResult.RETRY}
        for each in sinks:
            await each.__aexit__(None, None, None)

    before = set(threading.enumerate())
    with silent_server() as port:
        run(scenario)
    until = time.monotonic() + 60  # connection attempts end after their own timeout
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.05)
    assert set(threading.enumerate()) - before == set()


@pytest.mark.long
def test_closing_while_events_are_on_their_way(broker: Kafka) -> None:  # SUB-801: they are to be retried, none hangs
    async def scenario() -> None:
        async with open_sink(broker.target(seconds=30), "KAFKA") as sink:
            assert (await deliver(sink, event(0))).result is DeliveryResult.DELIVERED
            await asyncio.to_thread(broker.stop)
            sending = [asyncio.create_task(deliver(sink, event(number))) for number in range(10)]
            await asyncio.sleep(0.2)
            began = time.monotonic()
            await sink.close()
            assert {(await each).result for each in sending} == {DeliveryResult.RETRY}
            assert time.monotonic() - began < 5
            assert (await deliver(sink, event(1))).result is DeliveryResult.RETRY

    try:
        run(scenario)
    finally:
        broker.start()


def test_several_events_of_one_call(broker: Kafka) -> None:  # the outcome of a batch is its worst one
    async def scenario() -> None:
        async with open_sink(broker.target(), "KAFKA") as sink:
            assert (await sink.send([event(1), event(2)])).result is DeliveryResult.DELIVERED
            assert (
                await sink.send([event(3), event(4, {"changed": ["x" * LARGEST]})])
            ).result is DeliveryResult.REJECTED

    broker.fresh()
    run(scenario)
    assert [comparable(as_cloudevent(record).event) for record in records(broker, 2)] == [
        comparable(event(n)) for n in (1, 2)
    ]
