"""`annals spark live` as a long-running process: it follows until it is stopped, and names missing requirements."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.spark_projections import live
from tests.spark_projections.live_tables import check_tables, start_live
from tests.spark_projections.served_registry import ServedLog, served_log, write_changes
from tests.support.console import Annals, annals, folder, logs
from tests.support.polling import until

__all__ = ["annals", "folder", "logs"]

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(600)]


def reached(spark: SparkSession, tables: Path, registry: ServedLog) -> bool:
    """Whether the tables are at the end of the log."""
    return live.position(spark, str(tables)) == registry.rows()[-1].position


@pytest.mark.long
def test_it_follows_until_it_is_stopped(spark: SparkSession, sqlite_url: str, tmp_path: Path) -> None:
    # EV-79: what comes while it runs is taken in, and SIGTERM ends it between two micro-batches or within one
    tables = tmp_path / "tables"
    with served_log(sqlite_url, tmp_path) as registry:
        options = ("--from", "annals", "--registry", registry.url, "--seconds", "0.1")
        process = start_live(tmp_path, *options, once=False, _ANNALS_PROGRESS_SECONDS="0")
        until(lambda: reached(spark, tables, registry), 300)
        write_changes(registry, "late")
        until(lambda: reached(spark, tables, registry), 300)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out) == (0, f"position {registry.rows()[-1].position}\n"), err
        assert check_tables(spark, tables, registry.rows()) == registry.rows()[-1].position
    assert re.search(r"^annals: applied [1-9]\d* events", err, re.MULTILINE), err


@pytest.mark.parametrize(
    ("options", "settings", "code", "says"),
    [
        (("--from", "annals"), {}, 2, "needs --registry"),
        (("--from", "annals", "--registry", "http://127.0.0.1:9"), {}, 1, "the registry cannot be read"),
        (("--from", "kafka"), {}, 2, "needs --kafka"),
        (("--from", "kafka", "--kafka", "127.0.0.1:9"), {"TOKEN": "t"}, 2, "cannot send ANNALS_KAFKA_TOKEN"),
        (("--from", "kafka", "--kafka", "h:9"), {"USERNAME": "u", "PASSWORD": "p"}, 2, "TLS only"),
    ],
)
def test_missing_requirements_are_reported(
    spark: SparkSession,
    annals: Annals,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    settings: dict[str, str],
    code: int,
    says: str,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"ANNALS_KAFKA_{name}", value)
    ended = annals("spark", "live", "--once", "--to", "tables", "--checkpoint", "checkpoint", *options)
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), ended
    assert says in ended.err
