"""`annals spark`: queries from the command line, over a registry, segments or a database."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.projections.segments.folder import open_folder
from annals.projections.segments.manifest import SegmentRange
from annals.projections.segments.write import append_segments
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.served_registry import ServedLog, write_changes
from tests.support.console import Annals, annals, folder, logs
from tests.support.serving import ROOT, serving

pytestmark = pytest.mark.uses("Spark")

__all__ = ["annals", "folder", "logs"]

QUERY = "SELECT kind, count(*) AS times FROM events WHERE type = 'schemagroups.schemas' GROUP BY kind ORDER BY kind"
COUNTED = [{"kind": "created", "times": 1}, {"kind": "deleted", "times": 1}, {"kind": "updated", "times": 1}]
SHOWN = "|kind   |times|\n+-------+-----+\n|created|1    |\n|deleted|1    |\n|updated|1    |"


def query_rows(annals: Annals, *arguments: str) -> list[object]:
    ended = annals("spark", "sql", QUERY, "--json", *arguments)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_a_registry_and_its_segments(spark: SparkSession, annals: Annals, sqlite_url: str, tmp_path: Path) -> None:
    with serving(sqlite_url, tmp_path) as served:
        write_changes(ServedLog(served.url, sqlite_url), "one")
        assert query_rows(annals, "--from", served.url) == COUNTED
        ended = annals("spark", "sql", QUERY, "--from", served.url)
        assert (ended.code, SHOWN in ended.out) == (0, True)
    append_segments(sqlite_url, open_folder(str(tmp_path / "segments")))
    assert query_rows(annals, "--from", str(tmp_path / "segments")) == COUNTED


def test_a_database(
    spark: SparkSession, connectors: list[str], annals: Annals, postgres_url: str, tmp_path: Path
) -> None:
    require_connector(connectors, "postgres")
    with serving(postgres_url, tmp_path) as served:
        write_changes(ServedLog(served.url, postgres_url), "one")
    assert query_rows(annals, "--from", postgres_url) == COUNTED


def test_the_same_in_python(spark: SparkSession, registry: ServedLog, capsys: pytest.CaptureFixture[str]) -> None:
    steps = re.search(
        r"```python\n(.*?)```", (ROOT / "docs" / "guides" / "spark" / "analysts.md").read_text(), re.DOTALL
    )
    assert steps is not None and "http://127.0.0.1:8080" in steps[1]
    exec(steps[1].replace("http://127.0.0.1:8080", registry.url), {})
    assert re.search(r"\| +schemagroups\| +[1-9]", capsys.readouterr().out)


@pytest.fixture
def written(registry: ServedLog, tmp_path: Path) -> str:
    """A folder with segments."""
    folder = str(tmp_path / "written")
    append_segments(registry.database, open_folder(folder))
    return folder


def test_json_has_times_as_the_log_does(spark: SparkSession, annals: Annals, written: str) -> None:
    """FLAG-80: a time with its microseconds can be used as `asof`; one that is cut names the moment before."""
    query = (
        "SELECT TIMESTAMP '2026-01-02T03:04:05.678901Z' AS time, TIMESTAMP_NTZ '2026-01-02 03:04:05.000001' AS local"
    )
    ended = annals("spark", "sql", query, "--json", "--from", written)
    expected = {"time": "2026-01-02T03:04:05.678901Z", "local": "2026-01-02T03:04:05.000001"}
    assert (ended.code, json.loads(ended.out)) == (0, expected)


def test_what_is_refused(spark: SparkSession, annals: Annals, written: str) -> None:
    nowhere, segments = ("--from", "http://127.0.0.1:9"), ("--from", written)
    (later := Path("gap", "manifest", f"{SegmentRange(5, 9)}.json")).parent.mkdir(parents=True)
    later.touch()
    for arguments, code, message in [
        ((QUERY, *nowhere), 3, "the registry cannot be read"),
        ((QUERY, "--from", "none"), 3, "there are no segments at none"),
        ((QUERY, "--from", "gap"), 3, "position 1: the next segment is missing, while there are later ones"),
        (("SELECT nothing FROM events", *segments), 1, "UNRESOLVED_COLUMN"),
        (("SELEC", *segments), 1, "PARSE_SYNTAX_ERROR"),
        (("SELECT 1", "--from", "sqlite:///annals.db"), 2, "--from"),
        (("SELECT 1",), 2, "--from"),
    ]:
        ended = annals("spark", "sql", *arguments)
        assert (ended.code, ended.out) == (code, ""), ended
        assert message in ended.err and ended.err.count("\n") == 1, ended.err


def test_a_prompt(
    spark: SparkSession,
    annals: Annals,
    monkeypatch: pytest.MonkeyPatch,
    registry: ServedLog,
    written: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    counts = "print(spark.sql('SELECT * FROM events').count(), log.count())"
    typed = iter([counts, "import logging", "logging.warning('of the user')"])

    def line(_: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", line)
    ended, events = annals("spark", "shell", "--from", written), len(registry.rows())
    assert (ended.code, ended.out.strip()) == (0, f"{events} {events}"), ended.err
    assert "deprecations" in ended.err
    assert "of the user" in caplog.messages
