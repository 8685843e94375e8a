"""The console's Spark verbs on a standalone cluster, whose workers share nothing with the driver but files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import pytest
from pyspark.sql import SparkSession
from sqlalchemy import make_url

from tests.spark_projections.cluster import standalone
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.served_registry import log_rows
from tests.spark_projections.test_console import COUNTED, QUERY
from tests.support.serving import environment, serving
from tests.support.spark_archive import options

pytestmark = [pytest.mark.long, pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]

PASSWORD: Final = "pass-of-the-database"
TOKEN: Final = "token-of-a-reader"
CALLERS: Final = {TOKEN: {"name": "reader", "role": "reader"}, "w": {"name": "writer", "role": "admin"}}


class Cluster(NamedTuple):
    """A cluster. home: a folder with the logs of all processes, and the event logs of Spark's applications."""

    home: Path
    master: str

    def annals(self, *arguments: str, code: int = 0, **settings: str) -> str:
        """The output of a console command; its error output if the expected exit code is not 0."""
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.executor.extraJavaOptions": options(),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self.home / "events").as_uri(),
        }
        spark_settings = {"MASTER": self.master, "MEMORY": "600m", "CONF": json.dumps(conf)}
        env = environment(**{f"ANNALS_SPARK_{name}": value for name, value in spark_settings.items()}, **settings)
        command = [sys.executable, "-m", "annals", *arguments]
        done = subprocess.run(command, cwd=self.home, env=env, capture_output=True, text=True, timeout=500)
        with (self.home / "driver.log").open("a") as driver_log:
            driver_log.write(done.stdout + done.stderr)
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    def executors(self) -> list[set[str]]:
        """The executors that ran tasks, for each application."""
        return [
            {event["Task Info"]["Executor ID"] for line in log.open() if (event := json.loads(line)).get("Task Info")}
            for log in (self.home / "events").rglob("*")
            if log.is_file() and not log.name.startswith(".") and "appstatus" not in log.name
        ]


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("cluster")
    (home / "events").mkdir()
    with standalone(home / "spark") as master:
        yield Cluster(home, master)


# P-14: on a cluster, read model, tables and source give the same results; no file of it has a secret
def test_the_verbs_on_a_cluster(
    cluster: Cluster, spark: SparkSession, connectors: list[str], postgres_url: str, tmp_path: Path
) -> None:
    require_connector(connectors, "postgres")
    database = make_url(postgres_url).set(password=PASSWORD).render_as_string(hide_password=False)
    with serving(database, tmp_path, ANNALS_TOKENS=json.dumps(CALLERS)) as served:
        schema = {"format": "JsonSchema/draft-07", "schema": {"type": "object"}}
        for method, body in (("PUT", schema), ("PATCH", {"name": "n"}), ("DELETE", None)):
            write(served.url, method, "/schemagroups/g/schemas/s" + ("" if body is None else "$details"), body)
        answer = cluster.annals("spark", "sql", QUERY, "--json", "--from", served.url, ANNALS_TOKEN=TOKEN)
        assert [json.loads(line) for line in answer.splitlines()] == COUNTED
        lake = ("--format", "parquet", "--to", (tmp_path / "tables").as_uri())
        cluster.annals("lake", "append", "--from", served.url, *lake, ANNALS_TOKEN="w")
        end = log_rows(database)[-1].position
        assert f"position {end}, chain {log_rows(database)[-1].chain.hex()}" in cluster.annals("lake", "verify", *lake)
        stage = (tmp_path / "stage").as_uri()
        rebuilt = cluster.annals("rebuild", "--engine", "spark", "--stage", stage, ANNALS_DATABASE=database)
        assert "events in" in rebuilt
    assert len(cluster.executors()) == 4
    assert all(found and "driver" not in found for found in cluster.executors())
    # a folder of the driver's machine would not get the files that executors write elsewhere
    assert "--stage is needed" in cluster.annals("rebuild", "--engine", "spark", code=2, ANNALS_DATABASE=database)
    files = [path for path in cluster.home.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert [path for path in files if any(secret.encode() in path.read_bytes() for secret in (PASSWORD, TOKEN))] == []


def write(url: str, method: str, path: str, body: object) -> None:
    """Sends a write, which has to succeed."""
    answer = httpx.request(method, url + path, json=body, headers={"authorization": "Bearer w"}, timeout=30)
    assert answer.is_success, answer.text
