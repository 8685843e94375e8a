"""Brokers of MQTT and NATS with their bare clients, for the figures of sinks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.sinks.cloudevents import STRUCTURED, structured_json

if TYPE_CHECKING:
    from bench.sinks import Course


@contextmanager
def mqtt(protocol: str) -> Iterator[Course]:
    """A Mosquitto; each event is acknowledged (QoS 1). The bare client runs in its own thread, as it does by itself."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

    from bench.sinks import Course
    from tests.support.brokers.mosquitto import TOPIC, mosquitto
    from tests.support.brokers.suite import PASSWORD, USER

    version = MQTTProtocolVersion.MQTTv5 if protocol == "MQTT5" else MQTTProtocolVersion.MQTTv311
    with TemporaryDirectory(prefix="annals-bench-") as folder, mosquitto(Path(folder), protocol) as broker:
        client = Client(CallbackAPIVersion.VERSION2, protocol=version)
        client.username_pw_set(USER, PASSWORD)
        connected, done = threading.Event(), threading.Semaphore(0)
        client.on_connect = lambda *answer: connected.set()
        client.on_publish = lambda *answer: done.release()
        client.max_inflight_messages = 20  # as many as the broker takes from a client of MQTT 5
        client.connect("127.0.0.1", broker.plain)
        client.loop_start()
        connected.wait(10)

        def bare(events: Sequence[CloudEvent]) -> None:
            for each in events:
                client.publish(TOPIC, structured_json(each), 1)
            for _ in events:
                done.acquire()

        yield Course(broker.target(), bare)
        client.disconnect()
        client.loop_stop()


@contextmanager
def nats(stream: bool) -> Iterator[Course]:
    """A NATS server. stream: whether one stores the events, and acknowledges each; else the bare client asks.

    Either way no more events are unacknowledged at a time than with the sink.
    """
    import nats as client

    from bench.sinks import WIDTH, Course
    from tests.support.brokers.nats import SUBJECT, nats_server
    from tests.support.brokers.suite import PASSWORD, USER

    headers = {"Content-Type": STRUCTURED}

    async def publish(connection: Any, events: Sequence[CloudEvent]) -> None:
        for start in range(0, len(events), WIDTH):
            for each in events[start : start + WIDTH]:
                await connection.publish(SUBJECT, structured_json(each), headers=headers)
            await connection.flush()

    async def publish_stored(connection: Any, events: Sequence[CloudEvent]) -> None:
        context = connection.jetstream(publish_async_max_pending=WIDTH)
        for each in events:
            await context.publish_async(SUBJECT, structured_json(each), headers=headers)
        await context.publish_async_completed()

    with TemporaryDirectory(prefix="annals-bench-") as folder:
        further = f'jetstream: {{store_dir: "{folder}/store"}}' if stream else ""
        with nats_server(Path(folder), further) as server:
            if stream:
                server.add_stream()

            async def all_of(events: Sequence[CloudEvent]) -> None:
                url = f"nats://127.0.0.1:{server.plain}"
                connection = await client.connect(url, user=USER, password=PASSWORD)
                await (publish_stored if stream else publish)(connection, events)
                await connection.close()

            yield Course(server.target(), lambda events: asyncio.run(all_of(events)))
