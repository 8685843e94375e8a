"""A NATS server that a test starts, in a folder, on free ports: plain, with TLS, and over WebSockets.

A server has TLS on all of its ports or on none, so there are two processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import shutil
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import nats
import pytest
from cloudevents.core.bindings.common import get_event_factory_for_version
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.sink_uris import NATS
from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers.certificates import issue_certificate
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER, Broker, Received, receive_messages
from tests.support.ports import free_port, wait_for_port

NO_NATS = "no NATS: apt-get install nats-server, or put nats-server on PATH"
SUBJECT = "annals.changes"
#: A subject that USER may not publish to.
FORBIDDEN = "annals.forbidden"


def program() -> str:
    """The path of nats-server. Skips the test if it is not installed."""
    found = shutil.which("nats-server", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if found is None:
        pytest.skip(NO_NATS)
    return found


class Nats(Broker):
    """further: lines for the configuration of the plain server. login: replaces the default `authorization` of both."""

    protocol = NATS

    def __init__(self, folder: Path, further: str = "", login: str = "") -> None:
        self._folder = folder
        self.plain, self.tls, self.web = (free_port() for _ in range(3))
        self.processes: list[subprocess.Popen[bytes]] = []
        self._configure(further, login)

    def target(
        self,
        *,
        contentmode: str = "structured",
        credential: Credential | None = GOOD,
        tls: bool = False,
        seconds: float = 10.0,
        host: str = HOST,
        port: int | None = None,
        uri: str = "",
        **settings: Any,
    ) -> SinkTarget:
        """See Broker. uri: replaces the URI of the broker."""
        plain = f"{'tls' if tls else 'nats'}://{host}:{port or (self.tls if tls else self.plain)}"
        return SinkTarget("test", uri or plain, {"subject": SUBJECT} | settings, contentmode, credential, seconds)

    @contextmanager
    def receiving(self, subject: str = SUBJECT) -> Iterator[NatsReceiver]:
        """See Broker. The client reads from both servers."""
        receiver = NatsReceiver([self.plain, self.tls], subject, self.ca)
        try:
            yield receiver
        finally:
            receiver.close()

    def start(self) -> None:
        for name in ("plain", "tls"):
            with (self._folder / f"{name}.output").open("ab") as output:
                command = [str(program()), "-c", str(self._folder / f"{name}.conf")]
                self.processes.append(subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=output))
        for port in (self.plain, self.tls, self.web):
            wait_for_port(port, lambda: all(process.poll() is None for process in self.processes))

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()

    def add_stream(self, user: str = USER, password: str = PASSWORD, **settings: Any) -> None:
        """Creates a JetStream stream that stores messages of SUBJECT and FORBIDDEN."""
        subjects = [SUBJECT, FORBIDDEN]
        self._request(lambda streams: streams.add_stream(name="CHANGES", subjects=subjects, **settings), user, password)

    def remove_stream(self) -> None:
        """Deletes the stream with its messages."""
        self._request(lambda streams: streams.delete_stream("CHANGES"))

    def stored(self, user: str = USER, password: str = PASSWORD) -> int:
        """The number of messages in the stream."""
        return int(self._request(lambda streams: streams.stream_info("CHANGES"), user, password).state.messages)

    def _request(self, call: Callable[[Any], Awaitable[Any]], user: str = USER, password: str = PASSWORD) -> Any:
        """The response of JetStream."""

        async def ask() -> Any:
            client = await nats.connect(f"nats://127.0.0.1:{self.plain}", user=user, password=password)
            try:
                return await call(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(ask())

    def _configure(self, further: str, login: str) -> None:
        files = issue_certificate(self._folder / "certificates", HOST)
        self.ca = files.ca
        rights = f'permissions: {{publish: {{deny: ["{FORBIDDEN}"]}}}}'
        login = login or f'users: [{{user: {USER}, password: "{PASSWORD}", {rights}}}]'
        common = f"host: 127.0.0.1\nauthorization: {{{login}}}\n"
        (self._folder / "plain.conf").write_text(
            f"{common}port: {self.plain}\nwebsocket: {{host: 127.0.0.1, port: {self.web}, no_tls: true}}\n{further}\n"
        )
        (self._folder / "tls.conf").write_text(
            f'{common}port: {self.tls}\ntls: {{cert_file: "{files.certificate}", key_file: "{files.key}"}}\n'
        )


@contextmanager
def nats_server(folder: Path, further: str = "", login: str = "") -> Iterator[Nats]:
    """Runs both servers during the block."""
    sink_broker = Nats(folder, further, login)
    sink_broker.start()
    try:
        yield sink_broker
    finally:
        sink_broker.stop()


class Raw(NamedTuple):
    """A message as received."""

    subject: str
    reply: str
    headers: dict[str, str]
    payload: bytes


class NatsReceiver:
    """A NATS client that has subscribed to a subject on several servers, with its own thread and event loop."""

    def __init__(self, ports: list[int], subject: str, ca: Path) -> None:
        self._raw: queue.Queue[Raw] = queue.Queue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        opening = (self._open(port, subject, ca) for port in ports)
        self._clients = [asyncio.run_coroutine_threadsafe(each, self._loop).result(60) for each in opening]

    def raw(self, count: int, seconds: float = 60.0) -> list[Raw]:
        """The next messages as received."""
        return receive_messages(self._raw, count, seconds)

    def take(self, count: int, seconds: float = 60.0) -> list[Received]:
        """See Receiver."""
        return [parsed(raw) for raw in self.raw(count, seconds)]

    def close(self) -> None:
        for client in self._clients:
            with contextlib.suppress(Exception):
                asyncio.run_coroutine_threadsafe(client.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, port: int, subject: str, ca: Path) -> Any:
        async def on_message(message: Any) -> None:
            self._raw.put(Raw(message.subject, message.reply, dict(message.headers or {}), message.data))

        client = await nats.connect(
            f"nats://127.0.0.1:{port}",
            user=USER,
            password=PASSWORD,
            tls=ssl.create_default_context(cafile=str(ca)),
            tls_hostname=HOST,
        )
        await client.subscribe(subject, cb=on_message)
        await client.flush()
        return client


def parsed(raw: Raw) -> Received:
    """Parses a message as the binding requires of receivers: by its content type, structured or binary."""
    if raw.headers.get("Content-Type", "").startswith("application/cloudevents"):
        event = JSONFormat().read(CloudEvent, raw.payload)
        assert isinstance(event, CloudEvent)
        return Received("structured", event)
    attributes: dict[str, Any] = {name[3:]: unquote(value) for name, value in raw.headers.items() if name[:3] == "ce-"}
    if "time" in attributes:
        attributes["time"] = datetime.fromisoformat(attributes["time"])
    factory = get_event_factory_for_version(attributes["specversion"])
    event = factory(attributes, JSONFormat().read_data(raw.payload, attributes.get("datacontenttype")))
    assert isinstance(event, CloudEvent)
    return Received("binary", event)
