"""A copy from the real Apicurio and back."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from annals.domain.confluent.subjects import Subject
from tests.api.cli.confluent_copies.test_copies import AVRO, OTHER, report, sqlite
from tests.support.confluent import serving_confluent
from tests.support.console import Annals
from tests.support.downloads.maven import java, unpacked
from tests.support.ports import free_port, wait_for_port
from tests.support.schema_sets import contents, done, register

APICURIO: Final = "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all"


@pytest.mark.uses("Java")
@pytest.mark.timeout(300)
def test_a_copy_from_apicurio_and_back(annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # CSR-1002, CSR-1008
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1")
    database = sqlite(folder, "second")
    with apicurio(folder) as url, httpx.Client(base_url=url, timeout=30) as client:
        for subject, text in (("gone", '"int"'), ("orders", AVRO), ("orders", OTHER), ("own", '"long"')):
            register(client, subject, {"schema": text})
        for path in ("/subjects/gone", "/subjects/orders/versions/1"):
            client.delete(path).raise_for_status()
        for path, level in (("/config", "FULL"), ("/config/own", "FORWARD")):
            done(client, "PUT", path, {"compatibility": level})
        options = ("--from-confluent", url, "--database", database, "--report", "report.jsonl")
        assert annals("import", *options).out == "5 created, 1 failed\n"
        assert [line["subject"] for line in report(folder / "report.jsonl") if line.get("outcome") == "failed"] == [
            "gone"
        ]
        assert annals("export", "--to-confluent", url, "--database", database).out == "5 equal\n"
    with serving_confluent(database, folder / "second") as second:
        found = contents(second)
    levels = [found[Subject(".", name)].config.get("compatibilityLevel") for name in ("", "orders", "own")]
    assert levels == ["FULL", None, "FORWARD"]
    assert [(one.number, one.is_deleted) for one in found[Subject(".", "orders")].versions] == [(1, True), (2, False)]


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """The URL of Confluent's API of an Apicurio that keeps everything in memory."""
    port = free_port()
    options = [f"-Dapicurio.rest.deletion.{name}.enabled=true" for name in ("artifact", "artifact-version")]
    options += [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-Dapicurio.storage.kind=sql"]
    (runner,) = unpacked(APICURIO).glob("*-runner.jar")
    with (folder / "apicurio.log").open("wb") as log:
        command: list[str | Path] = [
            java(),
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *options,
            "-jar",
            runner,
        ]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_for_port(port, lambda: process.poll() is None, 90)
            yield f"http://127.0.0.1:{port}/apis/ccompat/v7"
        finally:
            process.terminate()
            process.wait(30)
