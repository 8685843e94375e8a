"""Sinks that are closed while they connect."""

from __future__ import annotations

import asyncio
import threading

import pytest

from annals.domain.subscriptions.sink_uris import MQTT3, MQTT5, NATS
from annals.projections.subscriptions.contract import DeliveryResult, SinkTarget
from tests.support.brokers.suite import deliver, event, open_sink, run
from tests.support.receivers import listener

#: Protocol: the scheme, and what a broker sends when it accepts a client.
BROKERS = {
    MQTT3: ("mqtt", b"\x20\x02\x00\x00"),
    MQTT5: ("mqtt", b"\x20\x03\x00\x00\x00"),
    NATS: ("nats", b'INFO {"server_id":"x","headers":true,"max_payload":1048576}\r\nPONG\r\n'),
}


@pytest.mark.parametrize("protocol", BROKERS)
def test_a_broker_that_accepts_after_the_sink_was_closed(protocol: str) -> None:
    # SUB-504: the event is not sent to the sink of a deleted subscription, and the connection ends
    scheme, greeting = BROKERS[protocol]
    is_connecting, is_closed, is_over = threading.Event(), threading.Event(), threading.Event()
    read = bytearray()

    async def accept_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_connecting.set()
        await asyncio.to_thread(is_closed.wait, 10)
        writer.write(greeting)
        while part := await reader.read(4096):
            read.extend(part)
        writer.close()
        is_over.set()

    async def scenario(port: int) -> None:
        settings = {"subject": "a", "topicname": "a", "qos": 0}
        target = SinkTarget("s", f"{scheme}://127.0.0.1:{port}", settings, timeout=10)
        async with open_sink(target, protocol) as sink:
            sending = asyncio.create_task(deliver(sink, event()))
            assert await asyncio.to_thread(is_connecting.wait, 10)
            await sink.close()
            is_closed.set()
            outcome = await sending
            assert (outcome.result, outcome.code) == (DeliveryResult.RETRY, "closed")
            assert await asyncio.to_thread(is_over.wait, 5)

    with listener(accept_late) as port:
        run(lambda: scenario(port))
    assert b"/schemagroups/g" not in read
