"""A Mosquitto that a test starts, in a folder, on free ports: plain, with TLS, and over WebSockets.

The same class is the broker of MQTT 3 and MQTT 5; only the client that reads from it differs.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cloudevents.core.bindings.common import get_event_factory_for_version
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

from annals.domain.subscriptions.sink_uris import MQTT5
from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers.certificates import issue_certificate
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER, Broker, Received, receive_messages
from tests.support.ports import free_port, wait_for_port

NO_MOSQUITTO = "no Mosquitto: apt-get install mosquitto, or put mosquitto and mosquitto_passwd on PATH"
TOPIC = "annals/changes"
#: A topic that USER may not publish to.
FORBIDDEN = "annals/forbidden"


def program(name: str) -> str:
    """The path of a program of Mosquitto. Skips the test if it is not installed."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
    if found is None:
        pytest.skip(NO_MOSQUITTO)
    return found


class Mosquitto(Broker):
    """protocol: MQTT3 or MQTT5. further: lines for its configuration."""

    def __init__(self, folder: Path, protocol: str, further: str = "") -> None:
        self.protocol, self.binary = protocol, protocol == MQTT5  # type: ignore[misc]
        self._folder = folder
        self.plain, self.tls, self.web, self.secure_web = (free_port() for _ in range(4))
        self.process: subprocess.Popen[bytes] | None = None
        self._configure(further)

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
        plain = f"{'mqtts' if tls else 'mqtt'}://{host}:{port or (self.tls if tls else self.plain)}"
        whole = {"topicname": TOPIC, "qos": 1, "retain": False} | settings
        return SinkTarget("test", uri or plain, whole, contentmode, credential, seconds)

    @contextmanager
    def receiving(self, topic: str = TOPIC) -> Iterator[MqttReceiver]:
        receiver = MqttReceiver(self.plain, topic, self.protocol == MQTT5)
        try:
            yield receiver
        finally:
            receiver.close()

    def start(self) -> None:
        with (self._folder / "output").open("ab") as output:
            command = [str(program("mosquitto")), "-c", str(self._folder / "mosquitto.conf")]
            self.process = subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=output)
        for port in (self.plain, self.tls, self.web, self.secure_web):
            wait_for_port(port, lambda: self.process is not None and self.process.poll() is None)

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _configure(self, further: str) -> None:
        files = issue_certificate(self._folder / "certificates", HOST)
        self.ca = files.ca
        passwords, rights = self._folder / "passwords", self._folder / "rights"
        passwords.touch(mode=0o600)
        subprocess.run([program("mosquitto_passwd"), "-b", passwords, USER, PASSWORD], check=True, capture_output=True)
        rights.write_text(f"user {USER}\ntopic readwrite #\ntopic deny {FORBIDDEN}\n")
        # Started as root, Mosquitto would switch to an account that may not read the test's files.
        keeps = "user root" if os.geteuid() == 0 else ""
        secure = f"certfile {files.certificate}\nkeyfile {files.key}"
        (self._folder / "mosquitto.conf").write_text(
            f"{keeps}\npersistence false\nallow_anonymous false\npassword_file {passwords}\nacl_file {rights}\n"
            f"{further}\n"
            f"listener {self.plain} 127.0.0.1\n"
            f"listener {self.tls} 127.0.0.1\n{secure}\n"
            f"listener {self.web} 127.0.0.1\nprotocol websockets\n"
            f"listener {self.secure_web} 127.0.0.1\nprotocol websockets\n{secure}\n"
        )


@contextmanager
def mosquitto(folder: Path, protocol: str, further: str = "") -> Iterator[Mosquitto]:
    """Runs a Mosquitto during the block."""
    sink_broker = Mosquitto(folder, protocol, further)
    sink_broker.start()
    try:
        yield sink_broker
    finally:
        sink_broker.stop()


class Raw(NamedTuple):
    """A message as received. properties: of MQTT 5, by name; empty for MQTT 3."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: dict[str, Any]


class MqttReceiver:
    """An MQTT client that has subscribed to a topic. With MQTT 5 it sees whether messages were retained."""

    def __init__(self, port: int, topic: str, five: bool) -> None:
        self._raw: queue.Queue[Raw] = queue.Queue()
        ready: queue.Queue[bool] = queue.Queue()
        version = MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=version)
        self._client.username_pw_set(USER, PASSWORD)
        options = {"options": SubscribeOptions(qos=2, retainAsPublished=True)} if five else {"qos": 2}
        self._client.on_connect = lambda client, *rest: client.subscribe(topic, **options)
        self._client.on_subscribe = lambda *rest: ready.put(True)
        self._client.on_message = partial(self._on_message)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        ready.get(timeout=60)

    def raw(self, count: int, seconds: float = 60.0) -> list[Raw]:
        """The next messages as received."""
        return receive_messages(self._raw, count, seconds)

    def take(self, count: int, seconds: float = 60.0) -> list[Received]:
        """See Receiver."""
        return [parsed(raw) for raw in self.raw(count, seconds)]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        given: Any = message.properties.json() if message.properties else {}
        self._raw.put(Raw(message.topic, bytes(message.payload), message.qos, bool(message.retain), given))


def parsed(raw: Raw) -> Received:
    """Parses a message as the binding requires of receivers: by its content type, which only MQTT 5 has."""
    kind = raw.properties.get("ContentType", "")
    if not raw.properties or kind.startswith("application/cloudevents"):
        event = JSONFormat().read(CloudEvent, raw.payload)
        assert isinstance(event, CloudEvent)
        return Received("structured", event)
    attributes: dict[str, Any] = dict(raw.properties["UserProperty"])
    if "time" in attributes:
        attributes["time"] = datetime.fromisoformat(attributes["time"])
    if kind:
        attributes["datacontenttype"] = kind
    factory = get_event_factory_for_version(attributes["specversion"])
    event = factory(attributes, JSONFormat().read_data(raw.payload, kind or None))
    assert isinstance(event, CloudEvent)
    return Received("binary", event)
