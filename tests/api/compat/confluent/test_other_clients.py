"""Clients for Java, Node.js and Go, and ClickHouse, against a served registry.

Each program uses most of the calls of its client and prints the results. Confluent's packages for Java are not on Maven
Central, but another project publishes its client and its serializer for Avro in one file, with all that they need.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.confluent import serving_confluent
from tests.support.downloads.environments import environment
from tests.support.downloads.maven import jars, java
from tests.support.downloads.npm import packages, run
from tests.support.left_out import leave_out

CLIENTS = Path(__file__).with_name("clients")
CONFLUENT_NODE = ("@confluentinc/schemaregistry@1.10.1", "@bufbuild/protobuf@2.17.0")
CONFLUENT_JAVA = "org.apache.pinot:pinot-confluent-avro:1.5.0:shaded@jar"  # Confluent's 7.9.5
CLICKHOUSE = "chdb-core==26.9.0"  # ClickHouse in a process
KAFKAJS = ("@kafkajs/confluent-schema-registry@3.9.0",)


@pytest.fixture
def address(store_url: str, tmp_path: Path) -> Iterator[str]:
    with serving_confluent(store_url, tmp_path) as found:
        yield found


@pytest.mark.timeout(300)
@pytest.mark.uses("Java")
def test_confluents_client_for_java(address: str) -> None:
    # CSR-1101; CSR-107, CSR-408, CSR-508, CSR-512, CSR-702 as this client and its serializer see them
    call: list[str | Path] = [java(), "-cp", jars(CONFLUENT_JAVA)[0], CLIENTS / "ConfluentJava.java", address]
    lines = subprocess.check_output(call, text=True, encoding="utf-8").splitlines()
    assert dict(line.split(": ", 1) for line in lines) == {
        "registered": "1",
        "read": '{"id": 7}',
        "known": "1",
        "unknown subject": "refused 404 40401",
        "unknown schema": "refused 404 40403",
        "incompatible": "refused 409 409",
        "latest": "1",
        "id": "1",
        "normalized": "1",
        "text": "2",
        "subjects": "[normalized-value, orders-value, texts-value]",
        "contexts": "[.]",
        "versions": "[1]",
        "missing subject": "refused 404 40401",
        "missing id": "refused 404 40403",
        "subjects of the id": "[normalized-value, orders-value]",
        "versions of the id": "[{subject=normalized-value,version=1}, {subject=orders-value,version=1}]",
        "evolved": "3",
        "version": "2",
        "id of the text": "1",
        "newest": "2",
        "compatible": "false",
        "reasons": "true",
        "level": "BACKWARD",
        "new level": "FULL",
        "mode": "READWRITE",
        "new mode": "READONLY",
        "read-only": "refused 422 42205",
        "old mode": "refused 404 40409",
        "import": "5000",
        "customer": "5001",
        "references": "[{name='shop.Order', subject='order', version=1}]",
        "referenced": "refused 422 42206",
        "deleted": "[1]",
        "deleted for good": "[1]",
        "deleted version": "1",
        "types": "[JSON, PROTOBUF, AVRO]",
        "with metadata": "1",
        "without it": "refused 404 40403",
    }


@pytest.mark.long
@pytest.mark.timeout(300)  # the first run downloads some 280 packages
@pytest.mark.uses("Node.js")
def test_confluents_client_for_node(address: str) -> None:
    # CSR-1101; CSR-107, CSR-408, CSR-413, CSR-508 as this client sees them
    assert run((CLIENTS / "confluent_node.js").read_text(), packages(*CONFLUENT_NODE), address) == {
        "avro": {"id": 7},
        "idInRecord": True,
        "headers": ["__value_schema_id"],
        "byGuid": {"id": 8},
        "json": {"name": "Ada"},
        "invalid": "SerializationError",
        "protobuf": 5,
        "references": [{"name": "times.proto", "subject": "times.proto", "version": 1}],
        "versions": [1],
        "found": True,
        "level": "FULL",
        "compatible": False,
        "refused": [409, 409],
        "deleted": [[1], [1]],
        "missing": [404, 40401],
        "subjects": ["events-value", "people-value", "times.proto"],
    }


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.uses("Node.js")
def test_kafkajs(address: str) -> None:
    assert run((CLIENTS / "kafkajs_node.js").read_text(), packages(*KAFKAJS), address) == {
        "avro": {"id": 7},
        "again": True,
        "latest": True,
        "found": True,
        "json": {"name": "Ada"},
        "protobuf": {"home": {"city": "London"}},
        "refused": "Confluent_Schema_Registry - Schema being registered is incompatible",
    }


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.uses("Go")
def test_franz_go(address: str, tmp_path: Path) -> None:
    # CSR-109: this client sends `limit=-1`; CSR-706: it reads the level of a deleted setting
    seen = json.loads(subprocess.check_output([franz_go(tmp_path), address], text=True))
    assert seen == {
        "created": [1, 1],
        "same id": True,
        "by id": True,
        "by guid": True,
        "text": True,
        "looked up": 1,
        "subjects of id": ["orders"],
        "versions of id": [{"subject": "orders", "version": 1}],
        "types": ["AVRO", "PROTOBUF", "JSON"],
        "contexts": ["."],
        "decoded": 7,
        "referrers": True,
        "used by": "person",
        "level": ["FULL", "FULL", "BACKWARD"],
        "check": [False, True],
        "refused": 409,
        "reset": ["FULL", 40408],
        "mode": "READWRITE",
        "set mode": "IMPORT",
        "imported": [5000, 3],
        "reset mode": "IMPORT",
        "all": 4,
        "deleted": [[1], [1]],
        "missing": 40401,
        "subjects": ["address", "imported", "person"],
    }


@pytest.mark.long
@pytest.mark.timeout(600)  # the first run downloads 300 MB
def test_clickhouse(store_url: str, tmp_path: Path) -> None:
    # CSR-101, CSR-1101: `AvroConfluent` registers and reads at a URL with a password
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"secret": {"name": "clickhouse", "role": "writer"}}))
    with serving_confluent(store_url, tmp_path / "server", ANNALS_TOKENS=str(tokens)) as address:
        registry = address.replace("//", "//any:secret@")
        call: list[str | Path] = [
            environment(CLICKHOUSE),
            CLIENTS / "clickhouse.py",
            registry,
            address,
            tmp_path / "records",
        ]
        assert json.loads(subprocess.check_output(call, text=True)) == {
            "rows": [[0, "x"], [1, None], [2, "x"]],
            "without a credential": "401",
        }


def franz_go(place: Path) -> Path:
    """Builds the program that uses franz-go. Skips the test without Go, or if its packages are not available."""
    go = shutil.which("go")
    if go is None:
        leave_out("no go: apt-get install golang, or put go on PATH")
    program = place / "franz_go"
    call: list[Any] = [go, "build", "-mod=readonly", "-o", program, "."]
    done = subprocess.run(call, cwd=CLIENTS / "franz_go", capture_output=True, text=True, check=False)
    if done.returncode:
        leave_out(f"go cannot build the client: {done.stderr[-500:]}")
    return program
