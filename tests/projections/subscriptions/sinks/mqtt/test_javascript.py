"""JavaScript's MQTT 5 client and its CloudEvents SDK read the same events."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from annals.domain.subscriptions.sink_uris import MQTT5
from annals.projections.subscriptions.contract import DeliveryResult
from tests.support.brokers.mosquitto import TOPIC, mosquitto
from tests.support.brokers.suite import PASSWORD, TEXTS, USER, deliver, event, open_sink
from tests.support.downloads.npm import packages

pytestmark = pytest.mark.uses("Mosquitto", "Node.js")

_SCRIPT = """
const mqtt = require("mqtt");
const { MQTT } = require("cloudevents");
const [url, topic, username, password] = process.argv.slice(1);
const client = mqtt.connect(url, { protocolVersion: 5, username, password });
client.on("connect", () => client.subscribe(topic, { qos: 1 }, () => console.log(JSON.stringify("listening"))));
client.on("message", (name, payload, packet) => {
  const { contentType, userProperties } = packet.properties || {};
  const binary = !contentType.startsWith("application/cloudevents");
  const event = MQTT.toEvent({
    PUBLISH: { "Content Type": contentType },
    headers: binary ? { ...userProperties, datacontenttype: contentType } : {},
    body: binary ? JSON.parse(payload.toString()) : payload.toString(),
  }, true);
  console.log(JSON.stringify(event));
});
"""


@pytest.mark.parametrize("contentmode", ["structured", "binary"])
def test_the_same_event(tmp_path: Path, contentmode: str) -> None:  # SUB-710: parse back to the same event
    home = packages("mqtt@5", "cloudevents@10")
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: apt-get install nodejs, or put node on PATH")
    sent = event(1, {"changed": list(TEXTS)}, subject="/schemagroups/Euro € 😀")
    with mosquitto(tmp_path, MQTT5) as broker:
        command = [node, "-e", _SCRIPT, f"mqtt://127.0.0.1:{broker.plain}", TOPIC, USER, PASSWORD]
        with subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, text=True) as reading:
            try:
                assert reading.stdout is not None
                assert json.loads(reading.stdout.readline()) == "listening"

                async def scenario() -> None:
                    async with open_sink(broker.target(contentmode=contentmode), MQTT5) as sink:
                        assert (await deliver(sink, sent)).result is DeliveryResult.DELIVERED

                asyncio.run(scenario())
                found = json.loads(reading.stdout.readline())
            finally:
                reading.kill()
    expected = dict(sent.get_attributes())
    # JavaScript's times have milliseconds.
    assert found.pop("time") == expected.pop("time").isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert found == expected | {"data": sent.get_data()}
