"""Kafka Connect with Debezium's JDBC sink, from Maven's artifacts: an independent sink, which fills a table."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.downloads.maven import jars, java
from tests.support.ports import free_port

_ARTIFACTS: Final = ("org.apache.kafka:connect-runtime:4.3.0", "io.debezium:debezium-connector-jdbc:3.3.1.Final")
_OPTIONS: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"


@contextmanager
def jdbc_sink(folder: Path, server: str, topic: str, settings: Mapping[str, str]) -> Iterator[Path]:
    """Runs a sink that reads a topic during the block; yields its log file. settings: further ones of the sink."""
    worker = {
        "bootstrap.servers": server,
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "offset.storage.file.filename": folder / "offsets",
        "listeners": f"http://127.0.0.1:{free_port()}",
        "consumer.isolation.level": "read_committed",
        "consumer.auto.offset.reset": "earliest",
    }
    sink = {
        "name": f"sink-{topic}",
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": 1,
        "topics": topic,
        **settings,
    }
    for name, properties in (("worker", worker), ("sink", sink)):
        (folder / name).write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    classpath = os.pathsep.join(map(str, jars(*_ARTIFACTS)))
    main: list[str | Path] = ["org.apache.kafka.connect.cli.ConnectStandalone", folder / "worker", folder / "sink"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([java(), *_OPTIONS, "-cp", classpath, *main], stdout=log, stderr=log, cwd=folder)
    try:
        yield folder / "log"
    finally:
        process.kill()
        process.wait()
