"""A copy from Karapace, which stores its schemas in a topic.

Karapace is not among the project's packages. The test is skipped unless `KARAPACE_PYTHON` names an interpreter whose
environment has it, such as `.venv-karapace/bin/python`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from annals.domain.confluent.subjects import Subject
from tests.api.cli.confluent_copies.test_copies import AVRO, OTHER, sqlite
from tests.support.brokers.kafka import kafka
from tests.support.confluent import serving_confluent
from tests.support.console import Annals
from tests.support.polling import until
from tests.support.ports import free_port, wait_for_port
from tests.support.schema_sets import contents, done, register

PYTHON: Final = os.environ.get("KARAPACE_PYTHON")
JSON: Final = '{"title": "base", "type": "object"}'


@pytest.mark.uses("Kafka")
@pytest.mark.timeout(300)
@pytest.mark.skipif(not PYTHON, reason="KARAPACE_PYTHON names no interpreter with Karapace")
def test_a_copy_from_karapace(annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # CSR-1002: Karapace's list of all schemas lacks soft-deleted versions. It has no pages and no contexts, and returns
    # the global mode as the mode of each subject.
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1")
    database = sqlite(folder, "second")
    with karapace(folder) as url, httpx.Client(base_url=url, timeout=30) as client:
        until(lambda: client.put("/config", json={"compatibility": "NONE"}).status_code == 200)
        for subject, body in (
            ("orders", {"schema": AVRO}),
            ("orders", {"schema": OTHER}),
            ("base", {"schema": JSON, "schemaType": "JSON"}),
        ):
            register(client, subject, body)
        done(client, "DELETE", "/subjects/orders/versions/1")
        done(client, "PUT", "/config/base", {"compatibility": "FULL"})
        copied = annals("import", "--from-confluent", url, "--database", database)
        assert copied.code == 0, copied.err
        assert annals("import", "--from-confluent", url, "--database", database).out == "6 equal\n"
    with serving_confluent(database, folder / "second") as second:
        found = contents(second)
    orders, base = found[Subject(".", "orders")], found[Subject(".", "base")]
    assert [(one.number, one.id, one.is_deleted) for one in orders.versions] == [(1, 1, True), (2, 2, False)]
    assert [(one.number, one.id, one.type) for one in base.versions] == [(1, 3, "JSON")]
    assert (base.config, base.mode, orders.mode) == ({"compatibilityLevel": "FULL"}, None, None)
    assert found[Subject(".", "")].config == {"compatibilityLevel": "NONE"}


@contextmanager
def karapace(folder: Path) -> Iterator[str]:
    """The URL of a Karapace with its own broker."""
    port = free_port()
    with kafka() as broker, (folder / "karapace.log").open("wb") as log:
        settings: dict[str, Any] = {
            "KARAPACE_BOOTSTRAP_URI": broker.own(),
            "KARAPACE_HOST": "127.0.0.1",
            "KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1",
            "KARAPACE_PORT": str(port),
            "KARAPACE_REPLICATION_FACTOR": "1",
        }
        command = [str(PYTHON), "-m", "karapace"]
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log)
        try:
            wait_for_port(port, lambda: process.poll() is None, 90)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)
