"""Segments and databases as sources: each returns the log, row by row."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from sqlalchemy import make_url
from zstandard import FRAME_HEADER

from annals.commands.store.log import Store
from annals.projections.segments.archive import archive_status
from annals.projections.segments.folder import NoSegments, open_folder
from annals.projections.segments.write import SegmentSize, append_segments
from annals.spark_projections.log_schema import LOG_SCHEMA, fill_later_columns
from annals.spark_projections.sources import postgres, segments
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.served_registry import ServedLog, by_position, collect_rows, served_log, write_changes
from tests.support.archives import archive_until


def test_segments_are_the_log(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # EV-79: each event once, whole interactions, nothing from files that are not in the manifest
    folder = tmp_path / "se gments"
    with pytest.raises(NoSegments, match="there are no segments at "):
        segments.read(spark, str(folder))
    written = append_segments(registry.database, open_folder(str(folder)), SegmentSize(events=20))
    stray = next((folder / "log").glob("*.parquet"))
    stray.with_stem(f"{stray.stem[:-1]}x").write_bytes(stray.read_bytes())
    for place in (str(folder), folder.as_uri()):
        log = segments.read(spark, place)
        assert log.schema == LOG_SCHEMA
        assert collect_rows(log) == registry.rows()
    assert written.segments > 3


def test_rows_without_the_last_columns(spark: SparkSession, registry: ServedLog) -> None:
    # ACC-115: in rows of an older program, these columns are empty texts, whether they were null or missing
    rows = registry.rows()
    older = spark.createDataFrame([tuple(row) for row in rows], LOG_SCHEMA).drop("authenticator", "keyid")
    for log in (older, older.withColumn("keyid", f.lit(None).cast("string"))):
        assert fill_later_columns(log).schema == LOG_SCHEMA
        assert collect_rows(fill_later_columns(log)) == rows


def with_hosts_in_query(postgres_url: str) -> str:
    """The URL in the form for a primary and a standby; the first one does not answer."""
    url = make_url(postgres_url)
    hosts = {"host": f"{url.host},{url.host}", "port": f"1,{url.port}"}
    return url.set(host=None, port=None).update_query_dict(hosts).render_as_string(hide_password=False)


def take_credentials_away(postgres_url: str) -> None:
    """Turns a store into one of schema 7."""
    with closing(Store(postgres_url)) as store, store.engine.begin() as connection:
        for column in ("authenticator", "keyid"):
            connection.exec_driver_sql(f"ALTER TABLE interaction DROP COLUMN {column}")
        connection.exec_driver_sql("UPDATE store SET value = '7' WHERE key = 'schema'")


def test_the_database_is_the_log(spark: SparkSession, postgres_url: str, tmp_path: Path, connectors: list[str]) -> None:
    # EV-79: each event once, however many tasks share the work
    require_connector(connectors, "postgres")
    with served_log(postgres_url, tmp_path) as registry:
        rows = registry.rows()
        for size, asof in ((10, None), (50_000, None), (9, rows[-2].position)):
            log = postgres.read(spark, postgres_url, asof, size)
            assert log.schema.simpleString() == LOG_SCHEMA.simpleString()
            assert log.rdd.getNumPartitions() == -(-rows[-1].last // size) if asof is None else True
            assert collect_rows(log) == [row for row in rows if asof is None or row.last <= asof]
        assert all(state.startswith(FRAME_HEADER) for state in stored_states(postgres_url))
        take_credentials_away(postgres_url)
        assert collect_rows(postgres.read(spark, postgres_url)) == rows
        assert collect_rows(postgres.read(spark, with_hosts_in_query(postgres_url))) == rows
        # A query without states neither reads nor decompresses them, and the database checks its conditions.
        plan = log.where("position > 7").select("stream")._jdf.queryExecution().executedPlan().toString()
        assert "ReadSchema: struct<stream:string>" in plan and "ArrowEvalPython" not in plan
        assert "GreaterThan(position,7)" in plan


def test_a_database_with_an_archive_is_refused(
    spark: SparkSession, postgres_url: str, tmp_path: Path, connectors: list[str]
) -> None:
    # Its rows lack the archived states; segments contain the whole log.
    require_connector(connectors, "postgres")
    with served_log(postgres_url, tmp_path) as registry:
        rows = registry.rows()
        with closing(Store(postgres_url)) as store:
            archive_until(store, postgres_url, str(tmp_path / "archive"), rows[-1].last // 2)
        with pytest.raises(ValueError, match="read segments"):
            postgres.read(spark, postgres_url)
        with closing(Store(postgres_url)) as store:
            archived = archive_status(store).last
        assert collect_rows(postgres.read(spark, postgres_url, after=archived)) == rows[archived:]
        append_segments(postgres_url, open_folder(str(tmp_path / "all")))
        assert collect_rows(segments.read(spark, str(tmp_path / "all"))) == rows


def stored_states(url: str) -> list[bytes]:
    with closing(Store(url)) as store, store.engine.connect() as connection:
        return [bytes(state) for state in connection.exec_driver_sql("SELECT state FROM log").scalars()]


def test_concurrent_writes_are_left_out(
    spark: SparkSession, postgres_url: str, tmp_path: Path, connectors: list[str]
) -> None:
    # FLAG-80: the rows end where the log ended when the source was created
    require_connector(connectors, "postgres")
    with served_log(postgres_url, tmp_path) as registry:
        rows, log = registry.rows(), postgres.read(spark, postgres_url)
        write_changes(registry, "late")
        assert collect_rows(log) == rows
        assert by_position(registry.rows())[len(rows) :]
