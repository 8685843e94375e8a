"""Sinks that send without end."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import threading

import pytest

from annals.domain.subscriptions.sink_uris import AMQP, MQTT5, NATS
from annals.projections.subscriptions.contract import SinkTarget
from tests.support.brokers.suite import deliver, event, open_sink, run
from tests.support.receivers import listener

#: What a sink may send before its connection is closed: its limit, and what the buffers of both systems hold.
MOST = 32 << 20

NATS_GREETING = b'INFO {"server_id":"x","headers":true,"max_payload":1048576}\r\nPONG\r\n'
MQTT_GREETING = b"\x20\x03\x00\x00\x00"
#: The beginning of a WebSocket message of 64 KiB less one byte.
FRAME = b"\x82\x7e\xff\xff"

#: Protocol, scheme, what the sink sends first, and what it repeats.
FLOODS = {
    "a NATS message without end": (NATS, "nats", NATS_GREETING + b"MSG a 1 999999999999\r\n", b"x"),
    "NATS messages": (NATS, "nats", NATS_GREETING, b"MSG a 1 5\r\nhello\r\n"),
    "NATS pings": (NATS, "nats", NATS_GREETING, b"PING\r\n"),
    "NATS answers": (NATS, "nats", NATS_GREETING, b"PONG\r\n"),
    "NATS in a WebSocket": (NATS, "ws", b"\x82%c%b" % (len(NATS_GREETING), NATS_GREETING), b"\x89\x00"),
    "an MQTT message of 256 MiB": (MQTT5, "mqtt", MQTT_GREETING + b"\x30\xff\xff\xff\x7f", b"x"),
    "MQTT messages": (MQTT5, "mqtt", MQTT_GREETING, b"\x30\x0a\x00\x01a\x00xxxxxx"),
    "MQTT answers": (MQTT5, "mqtt", MQTT_GREETING, b"\xd0\x00"),
    "AMQP frames": (AMQP, "amqp", b"AMQP\x00\x01\x00\x00", b"\x00\x00\x00\x08\x02\x00\x00\x00"),
    "AMQP in a WebSocket": (AMQP, "ws", b"", b"\x89\x00"),
    "MQTT in a WebSocket": (MQTT5, "ws", b"\x82\x05" + MQTT_GREETING, FRAME + b"\x30\xff\xff\xff\x7f" + b"x" * 65530),
}


@pytest.mark.parametrize(("protocol", "scheme", "greeting", "repeated"), FLOODS.values(), ids=FLOODS.keys())
def test_a_sink_that_sends_without_end(protocol: str, scheme: str, greeting: bytes, repeated: bytes) -> None:
    # SUB-806, SUB-823: it neither fills the memory nor keeps the event loop from other subscriptions
    sent, is_over = 0, threading.Event()
    part = repeated * (65536 // len(repeated) + 1)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        if scheme == "ws":
            writer.write(accepted(await reader.readuntil(b"\r\n\r\n")))
        writer.write(greeting)
        try:
            while sent < 10 * MOST:
                writer.write(part)
                sent += len(part)
                await writer.drain()
        except OSError:
            pass
        finally:
            is_over.set()
            writer.close()

    async def scenario(port: int) -> None:
        settings = dict.fromkeys(("subject", "topicname", "address"), "a")
        target = SinkTarget("s", f"{scheme}://127.0.0.1:{port}", settings, timeout=60)
        async with open_sink(target, protocol) as sink:
            await deliver(sink, event())
            assert await asyncio.to_thread(is_over.wait, 50)

    with listener(flood) as port:
        run(lambda: scenario(port))
    assert sent < MOST


def accepted(request: bytes) -> bytes:
    """The response to a request that opens a WebSocket."""
    fields = dict(line.lower().partition(b": ")[::2] for line in request.split(b"\r\n"))
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", request)
    assert key
    accept = base64.b64encode(hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    lines = [b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket", b"Connection: Upgrade"]
    lines += [b"Sec-WebSocket-Accept: " + accept]
    if protocol := fields.get(b"sec-websocket-protocol"):
        lines += [b"Sec-WebSocket-Protocol: " + protocol]
    return b"\r\n".join((*lines, b"", b""))
