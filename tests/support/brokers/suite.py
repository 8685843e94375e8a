"""The contract of all sinks, whatever their protocol: one set of cases, run against real brokers.

A protocol has a `Broker` (a broker, and a third-party client that reads from it) and a test module with
`class TestX(Contract)` whose fixture `sink_broker`, of scope `class`, gives a started broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import pytest
from cloudevents.core.v1.event import CloudEvent

from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.projections.outgoing.resolver import ForbiddenAddress
from annals.projections.subscriptions.contract import Credential, DeliveryResult, Outcome, Sink, SinkTarget
from annals.projections.subscriptions.sinks import load_sinks
from tests.support.ports import free_port

T = TypeVar("T")

#: The host name of sinks. It is not in DNS, so a sink that looks it up without the resolver fails.
HOST: Final = "broker.test"
USER: Final = "annals"
PASSWORD: Final = "correct horse"
WRONG: Final = "marker-of-a-wrong-secret"
GOOD: Final = Credential("PLAIN", identifier=USER, secret=PASSWORD)
BAD: Final = Credential("PLAIN", identifier=USER, secret=WRONG)

#: Attribute values and data that every mapping must preserve.
TEXTS: Final = ("Euro € 😀", 'a "quoted" 100%', "%41 is not A", " blanks ", "Ünïcödé/路径")

#: Events of the legacy APIs, which have no data: the family, the kind of change, the subject, and the time.
LEGACY: Final = [
    (SCHEMAREGISTRY, "updated", "/schemagroups/g", datetime(2020, 1, 1, tzinfo=UTC)),
    (SCHEMAREGISTRY, "updated", "/schemagroups/a%2Fb%20%C3%BC/schemas/s:1", datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
    (SCHEMAREGISTRY, "deleted", "/schemagroups/g/schemas/s/versions/12", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (MESSAGECATALOG, "updated", "/messagecatalog/g/messagedefinitions/m%21", datetime(2026, 1, 2, tzinfo=UTC)),
    (MESSAGECATALOG, "updated", "/messagecatalog/g/messagedefinitions/m/versions/1", datetime(1, 1, 1, tzinfo=UTC)),
    (MESSAGECATALOG, "deleted", "/messagecatalog/g", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
]


class Received(NamedTuple):
    """A message that a client received from the broker. mode: `structured` or `binary`; event: the parsed message."""

    mode: str
    event: CloudEvent


class Receiver(Protocol):
    """A client that has subscribed; it receives all later messages."""

    def take(self, count: int, seconds: float = 60.0) -> list[Received]:
        """The next messages, in order; fewer if no more arrive in time."""


class Broker(ABC):
    """A broker that requires USER and PASSWORD on all of its ports, and whose certificate is for HOST."""

    protocol: ClassVar[str]
    #: Whether the protocol has binary mode.
    binary: ClassVar[bool] = True
    #: Whether the sink allows concurrent calls of `send`.
    concurrent: ClassVar[bool] = True
    #: Whether the sink reconnects, to the given address, after an attempt without a response. False if the protocol has
    #: keep-alive packets for that, or the broker advertises other addresses.
    reconnects_after_timeout: ClassVar[bool] = True
    #: The longest time in seconds from the start of the broker until it accepts events.
    slow: ClassVar[float] = 20.0
    #: The authority that clients have to trust.
    ca: Path

    @abstractmethod
    def target(
        self,
        *,
        contentmode: str = "structured",
        credential: Credential | None = GOOD,
        tls: bool = False,
        seconds: float = 10.0,
        host: str = HOST,
        port: int | None = None,
        **settings: Any,
    ) -> SinkTarget:
        """The target of a subscription to this broker. settings: replace or add to `protocolsettings`.

        port: of another server, instead of the broker's.
        """

    @abstractmethod
    def receiving(self) -> AbstractContextManager[Receiver]:
        """A client that reads from the topic, queue or address of `target()`."""

    @abstractmethod
    def start(self) -> None:
        """Starts the broker on the same ports each time, and returns when it accepts connections."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the broker abruptly, as if its machine failed."""


@dataclass
class LocalResolver:
    """Resolves every name to this machine. lookups: the requested names and ports."""

    address: str = "127.0.0.1"
    refuses: bool = False

    def __post_init__(self) -> None:
        self.lookups: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> str:
        self.lookups.append((host, port))
        if self.refuses:
            raise ForbiddenAddress("not an address that may be sent to")
        return self.address


def event(number: int = 1, data: Any = ..., **attributes: Any) -> CloudEvent:
    """An event like those of a registry. data: None for an event without data; attributes: None omits one."""
    whole: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"0193e2b8.{number}.xregistry.version.updated",
        "source": "https://registry.example.com",
        "type": "io.xregistry.version.updated",
        "subject": f"/schemagroups/g/schemas/s{number}/versions/1",
        "time": datetime(2026, 1, 2, 3, 4, 5, 60000 + number, UTC),
        "xregcorrelationid": "0193e2b8",
        "sequence": f"{number:020}.00",
        "datacontenttype": "application/json",
    } | attributes
    if data is None:
        del whole["datacontenttype"]
    given = {name: value for name, value in whole.items() if value is not None}
    return CloudEvent(given, {"changed": ["name", f"number{number}"]} if data is ... else data)


def legacy_event(number: int) -> CloudEvent:
    """The event of a row of LEGACY."""
    family, became, subject, time = LEGACY[number]
    source, type = f"https://registry.example.com{family.base}", f"{family.events}.{became}.v1"
    return event(number, None, id=f"0193e2b8.{number}", source=source, type=type, subject=subject, time=time)


def comparable(event: CloudEvent) -> tuple[dict[str, Any], Any]:
    """An event as values that can be compared."""
    return dict(event.get_attributes()), event.get_data()


@asynccontextmanager
async def open_sink(target: SinkTarget, protocol: str, names: LocalResolver | None = None) -> AsyncIterator[Sink]:
    sink = load_sinks()[protocol](target, names or LocalResolver())
    try:
        yield sink
    finally:
        await sink.close()


def receive_messages(messages: queue.Queue[T], count: int, seconds: float) -> list[T]:
    """The next messages; fewer if the time runs out."""
    end = time.monotonic() + seconds
    found: list[T] = []
    while len(found) < count:
        try:
            found.append(messages.get(timeout=max(0.0, end - time.monotonic())))
        except queue.Empty:
            break
    return found


async def deliver(sink: Sink, event: CloudEvent) -> Outcome:
    """The outcome of sending an event; checks that its message fits into the stored field."""
    outcome = await sink.send([event])
    assert isinstance(outcome, Outcome)
    assert len(outcome.message.encode()) <= 1024
    return outcome


async def deliver_with_retries(sink: Sink, event: CloudEvent, seconds: float) -> Outcome:
    """The outcome of sending an event, after retries."""
    end = time.monotonic() + seconds
    while (outcome := await deliver(sink, event)).result is DeliveryResult.RETRY and time.monotonic() < end:
        await asyncio.sleep(0.25)
    return outcome


@contextmanager
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield int(listening.getsockname()[1])


@contextmanager
def recording_server(greeting: bytes = b"") -> Iterator[tuple[str, int, list[bytes]]]:
    """A server outside loopback that records all bytes it receives: its address, its port, and the bytes.

    Skips the test on a machine without such an address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("no address beyond loopback: needs a network interface that is up")
        address = str(probe.getsockname()[0])
    read: list[bytes] = []
    with socket.create_server((address, 0)) as listening:

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.sendall(greeting)
                        while part := connection.recv(4096):
                            read.append(part)

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield address, int(listening.getsockname()[1]), read
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


class Relay:
    """A relay between a client and a broker that can silently lose connections. port: the port of the relay."""

    def __init__(self, port: int | None) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._lost: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self) -> None:
        """Drops all further data of the open connections; new connections work."""
        self._lost.update(self._sockets)

    def close(self) -> None:
        for each in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                broker = socket.create_connection(("127.0.0.1", self._to))
                self._sockets += (client, broker)
                for pair in ((client, broker), (broker, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                if source not in self._lost:
                    to.sendall(part)
            if source not in self._lost:
                to.shutdown(socket.SHUT_WR)


@contextmanager
def frozen_process(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Suspends a process during the block; its connections stay open."""
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)  # `send_signal` returns before all threads have stopped
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Runs a scenario in a new event loop, and checks that it leaves no tasks behind."""

    async def whole() -> None:
        await scenario()
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left: {left}"

    asyncio.run(whole())


def descriptors() -> int:
    """The number of open files and sockets of this process; 0 if the system does not report them."""
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


class Contract:
    """The cases. Each protocol's test class derives from it."""

    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls) -> Iterator[Broker]:
        raise NotImplementedError

    both = pytest.mark.parametrize("mode", ["structured", "binary"])

    @both
    def test_the_event_arrives_unchanged(
        self, sink_broker: Broker, mode: str
    ) -> None:  # SUB-703, 710: the received event equals the sent one
        sent = event(1)
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(contentmode=mode), sink_broker.protocol) as sink:
                    assert (await deliver(sink, sent)).result is DeliveryResult.DELIVERED

            run(scenario)
            (received,) = receiver.take(1)
        assert received.mode == (mode if sink_broker.binary else "structured")
        assert comparable(received.event) == comparable(sent)

    @both
    def test_values_beyond_ascii_arrive_as_they_were(self, sink_broker: Broker, mode: str) -> None:  # SUB-701: any text
        sent = [event(n, {"changed": [text, *TEXTS]}, subject=f"/g/{text}") for n, text in enumerate(TEXTS)]
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(contentmode=mode), sink_broker.protocol) as sink:
                    for each in sent:
                        assert (await deliver(sink, each)).result is DeliveryResult.DELIVERED

            run(scenario)
            received = receiver.take(len(sent))
        assert [comparable(each.event) for each in received] == [comparable(each) for each in sent]

    @both
    def test_an_event_without_data_is_structured(self, sink_broker: Broker, mode: str) -> None:  # SUB-702: in any mode
        sent = event(3, None)
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(contentmode=mode), sink_broker.protocol) as sink:
                    assert (await deliver(sink, sent)).result is DeliveryResult.DELIVERED

            run(scenario)
            (received,) = receiver.take(1)
        assert received.mode == "structured"
        assert comparable(received.event) == comparable(sent)

    @both
    def test_events_of_the_legacy_apis_arrive_unchanged(self, sink_broker: Broker, mode: str) -> None:
        # LEG-1001, LEG-1008, SUB-114: each family, with its sources, subjects and times
        sent = [legacy_event(number) for number in range(len(LEGACY))]
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(contentmode=mode), sink_broker.protocol) as sink:
                    for each in sent:
                        assert (await deliver(sink, each)).result is DeliveryResult.DELIVERED

            run(scenario)
            received = receiver.take(len(sent))
        assert [each.mode for each in received] == ["structured"] * len(sent)
        assert [comparable(each.event) for each in received] == [comparable(each) for each in sent]

    @both
    def test_events_arrive_in_the_order_of_sending(self, sink_broker: Broker, mode: str) -> None:  # SUB-811: one by one
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(contentmode=mode), sink_broker.protocol) as sink:
                    for number in range(100):
                        each = event(number, subject="/schemagroups/g")
                        assert (await deliver(sink, each)).result is DeliveryResult.DELIVERED

            run(scenario)
            received = [str(each.event.get_attributes()["sequence"]) for each in receiver.take(100)]
        assert len(received) == 100
        assert received == sorted(received)

    def test_sends_may_overlap(self, sink_broker: Broker) -> None:
        if not sink_broker.concurrent:
            pytest.skip(f"a sink of {sink_broker.protocol} is used by one task at a time")
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(seconds=60), sink_broker.protocol) as sink:
                    outcomes = await asyncio.gather(*(deliver(sink, event(number)) for number in range(300)))
                    assert [each for each in outcomes if each.result is not DeliveryResult.DELIVERED] == []

            run(scenario)
            received = {str(each.event.get_attributes()["id"]) for each in receiver.take(300)}
        assert len(received) == 300

    @pytest.mark.long
    def test_a_restarted_broker(self, sink_broker: Broker) -> None:  # SUB-801: retried, then delivered
        target = sink_broker.target(seconds=4)

        async def scenario() -> None:
            async with open_sink(target, sink_broker.protocol) as sink:
                assert (await deliver_with_retries(sink, event(1), sink_broker.slow)).result is DeliveryResult.DELIVERED
                await asyncio.to_thread(sink_broker.stop)
                try:
                    began = time.monotonic()
                    outcome = await deliver(sink, event(2))
                    assert outcome.result is DeliveryResult.RETRY
                    assert outcome.code
                    assert time.monotonic() - began < target.timeout + 10
                finally:
                    await asyncio.to_thread(sink_broker.start)
                assert (await deliver_with_retries(sink, event(2), sink_broker.slow)).result is DeliveryResult.DELIVERED

        run(scenario)

    def test_a_connection_that_is_lost_silently(self, sink_broker: Broker) -> None:  # 8.3: the next attempt reconnects
        if not sink_broker.reconnects_after_timeout:
            pytest.skip(f"a sink of {sink_broker.protocol} notices in a way of its own")
        relay = Relay(urlsplit(sink_broker.target().uri).port)

        async def scenario() -> None:
            async with open_sink(sink_broker.target(port=relay.port, seconds=2), sink_broker.protocol) as sink:
                assert (await deliver_with_retries(sink, event(1), sink_broker.slow)).result is DeliveryResult.DELIVERED
                relay.lose()
                lost = await deliver(sink, event(2))
                assert (lost.result, lost.code) == (DeliveryResult.RETRY, "timeout")
                assert (await deliver_with_retries(sink, event(2), sink_broker.slow)).result is DeliveryResult.DELIVERED

        try:
            run(scenario)
        finally:
            relay.close()

    def test_an_unreachable_broker(self, sink_broker: Broker) -> None:  # 8.3: a refused connection is retried
        target = sink_broker.target(seconds=3, port=free_port())

        async def scenario() -> None:
            async with open_sink(target, sink_broker.protocol) as sink:
                began = time.monotonic()
                outcome = await deliver(sink, event(1))
                assert outcome.result is DeliveryResult.RETRY
                assert time.monotonic() - began < target.timeout + 10
                assert "127.0.0.1" not in outcome.message  # SUB-904: no internal address

        run(scenario)

    def test_a_silent_server(self, sink_broker: Broker) -> None:  # 8.3: a timeout is retried
        with silent_server() as port:
            target = sink_broker.target(seconds=2, port=port)

            async def scenario() -> None:
                async with open_sink(target, sink_broker.protocol) as sink:
                    began = time.monotonic()
                    assert (await deliver(sink, event(1))).result is DeliveryResult.RETRY
                    assert time.monotonic() - began < target.timeout + 10

            run(scenario)

    def test_a_send_that_is_cancelled_ends_at_once(self, sink_broker: Broker) -> None:
        with silent_server() as port:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(seconds=60, port=port), sink_broker.protocol) as sink:
                    sending = asyncio.create_task(sink.send([event(1)]))
                    await asyncio.sleep(0.3)
                    sending.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await asyncio.wait_for(sending, 20)

            began = time.monotonic()
            run(scenario)
            assert time.monotonic() - began < 30

    def test_a_wrong_password(self, sink_broker: Broker) -> None:  # SUB-305: has its own outcome
        async def scenario() -> None:
            async with open_sink(sink_broker.target(credential=BAD), sink_broker.protocol) as sink:
                # If a broker closes the connection right after its response, the sink sometimes sees only the close.
                outcome = await deliver_with_retries(sink, event(1), sink_broker.slow)
                assert outcome.result is DeliveryResult.UNAUTHORIZED
                assert WRONG not in f"{outcome} {sink!r}"  # SUB-303: no secret in any text

        run(scenario)

    def test_tls_with_a_private_authority(self, sink_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(sink_broker.ca))
        names = LocalResolver()
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(tls=True), sink_broker.protocol, names) as sink:
                    assert await deliver(sink, event(1)) == Outcome(DeliveryResult.DELIVERED)

            run(scenario)
            assert len(receiver.take(1)) == 1
        # SUB-901: names are resolved only by the resolver, and the certificate is still verified against the name.
        assert {host for host, _ in names.lookups} == {HOST}

    def test_an_untrusted_certificate(self, sink_broker: Broker) -> None:  # SUB-906: verified
        async def scenario() -> None:
            async with open_sink(sink_broker.target(tls=True, seconds=5), sink_broker.protocol) as sink:
                assert (await deliver(sink, event(1))).result is DeliveryResult.RETRY

        run(scenario)

    def test_a_certificate_of_another_name(
        self, sink_broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:  # SUB-906
        monkeypatch.setenv("SSL_CERT_FILE", str(sink_broker.ca))

        async def scenario() -> None:
            async with open_sink(
                sink_broker.target(tls=True, seconds=5, host="other.test"), sink_broker.protocol
            ) as sink:
                assert (await deliver(sink, event(1))).result is DeliveryResult.RETRY

        run(scenario)

    def test_an_address_that_is_refused(self, sink_broker: Broker) -> None:  # SUB-901: checked at each connection
        names = LocalResolver(refuses=True)
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(seconds=5), sink_broker.protocol, names) as sink:
                    outcome = await deliver(sink, event(1))
                    assert outcome.result is DeliveryResult.RETRY
                    assert names.lookups

            run(scenario)
            assert receiver.take(1, seconds=0.5) == []

    def test_closing_leaves_nothing(self, sink_broker: Broker) -> None:
        # Once before counting: libraries keep threads and files that they create at first use.
        self._open_send_close(sink_broker)
        threads, files = set(threading.enumerate()), descriptors()
        self._open_send_close(sink_broker)
        end = time.monotonic() + 60
        while (set(threading.enumerate()) - threads or descriptors() > files) and time.monotonic() < end:
            time.sleep(0.05)
        assert set(threading.enumerate()) - threads == set()
        assert descriptors() <= files

    @staticmethod
    def _open_send_close(sink_broker: Broker) -> None:
        async def scenario() -> None:
            async with open_sink(sink_broker.target(), sink_broker.protocol) as sink:
                assert (await deliver(sink, event(1))).result is DeliveryResult.DELIVERED
                await sink.close()  # a second close has no effect

        run(scenario)
