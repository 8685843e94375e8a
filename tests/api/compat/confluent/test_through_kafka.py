"""Third-party producers and consumers with a real broker; their schemas are in a served registry."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from tests.support.brokers.kafka import Kafka, kafka
from tests.support.confluent import serving_confluent
from tests.support.downloads.environments import environment

CONFLUENT_PYTHON = "confluent-kafka[schemaregistry,avro,json,protobuf,rules]==2.16.1"
PROGRAM = Path(__file__).with_name("clients") / "confluent_python.py"
PLAIN = '{"type": "record", "name": "Plain", "fields": [{"name": "id", "type": "long"}]}'


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as running:
        yield running


@pytest.fixture
def address(store_url: str, tmp_path: Path) -> Iterator[str]:
    with serving_confluent(store_url, tmp_path) as found:
        yield found


@pytest.mark.long
@pytest.mark.timeout(600)  # the first run downloads the client and the packages for its rules
@pytest.mark.uses("Kafka")
def test_confluents_client_for_python(address: str, broker: Kafka) -> None:
    # CSR-1101: serializers of three types, references, producers that register or not, ids in headers, rules
    done = subprocess.run(
        [environment(CONFLUENT_PYTHON), PROGRAM, address, broker.own()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout) == {
        "avro": [True, True, 40403, 42206],
        "registering avro": [[{"id": 1}, {"id": 2}], [1]],
        "json": [{"customer": {"name": "Ada"}}, "SerializationError"],
        "protobuf": [True, ["shop/address.proto"]],
        "every import": [
            True,
            ["google/protobuf/timestamp.proto", "google/type/money.proto", "shop/address.proto"],
        ],
        "guid in headers": [True, ["__value_schema_id"], 10],
        "domain rules": [{"id": 1}, "SerializationError", ["positive", "message.id > 0", "WRITE"]],
        "migration rules": {"number": 4},
        "management": [True, 1, "FULL", False, 409, 42201, 40402, ["managed"], [1], [1], ["managed"], [1], 40401],
        "asynchronous": [{"id": 1}, {"name": "Ada"}, True, [1]],
    }


@pytest.mark.long
@pytest.mark.uses("Kafka")
def test_kcat_reads_avro_registered_here(address: str, broker: Kafka) -> None:
    # CSR-101: libserdes appends its path to the address; CSR-104: it sends no Accept
    program = kcat_with_avro()
    body: Any = {"schema": PLAIN}
    id = httpx.post(f"{address}/subjects/plain-value/versions", json=body).json()["id"]
    topic = broker.fresh()
    producer = KafkaProducer(bootstrap_servers=broker.own())
    producer.send(topic, b"\x00" + id.to_bytes(4, "big") + b"\x0e").get(60)
    producer.close()
    call = [program, "-C", "-b", broker.own(), "-t", topic, "-o", "beginning", "-e", "-q", "-s", "value=avro"]
    done = subprocess.run([*call, "-r", address], capture_output=True, text=True, timeout=60, check=False)
    assert (json.loads(done.stdout), done.stderr) == ({"id": 7}, "")


def kcat_with_avro() -> str:
    """A kcat that supports schema registries. Skips the test without one: Debian's package lacks libserdes."""
    found = shutil.which("kcat")
    if found is None or "Avro" not in subprocess.check_output([found, "-V"], text=True):
        pytest.skip("no kcat with Avro: build it with libserdes, and put it on PATH")
    return found
