"""Buckets with either scheme, `s3` or `s3a`: Spark reads and writes the files that Arrow accesses over S3."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from annals.projections.entities.rebuild import rebuild as rebuild_store
from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import append_segments
from annals.spark_projections.events import EventDestination
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.lake import Lake, append
from annals.spark_projections.lake.source import from_segments
from annals.spark_projections.read_model.rebuild import rebuild
from annals.spark_projections.sources import segments
from tests.support.registries.recorded import Registry
from tests.support.s3 import BUCKET, CLIENT, S3, s3_store
from tests.support.segment_logs import record_interactions

pytestmark = pytest.mark.uses("S3Proxy", "Spark")

_OVERLOADED = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


@pytest.fixture(scope="module")
def s3(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A store whose bucket Arrow accesses over the S3 protocol, and Spark as a mount of the folder behind it.

    Spark's own S3 client is half a gigabyte, so a mount by Hadoop replaces it.
    """
    context: Any = spark.sparkContext
    conf = context._jsc.hadoopConfiguration()
    with s3_store(tmp_path_factory.mktemp("s3")) as store, pytest.MonkeyPatch.context() as patch:
        for name, value in CLIENT.items():
            patch.setenv(name, value)
        mount = {
            "fs.s3a.impl": _OVERLOADED,
            "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
            f"fs.viewfs.mounttable.{BUCKET}.linkFallback": store.bucket.as_uri(),
        }
        for name, value in mount.items():
            conf.set(name, value)
        yield store
        for name in mount:
            conf.unset(name)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["s3", pytest.param("s3a", marks=pytest.mark.long)])
def test_a_rebuild_by_way_of_a_bucket(spark: SparkSession, s3: S3, sqlite_url: str, scheme: str) -> None:
    # P-14: log, staging folder and events may all be in one bucket, with one scheme
    with Registry(sqlite_url) as registry:
        record_interactions(registry, 20)
        before = registry.tables()
        append_segments(sqlite_url, open_folder(s3.uri(scheme, f"{scheme}/annals")))
        log = segments.read(spark, s3.uri(scheme, f"{scheme}/annals"))
        events = EventDestination(f"{scheme}://{BUCKET}/{scheme}/events")
        report = rebuild(
            log, partial(rebuild_store, registry.store, None), None, s3.uri(scheme, f"{scheme}/stage"), events
        )
        assert (report.position, registry.tables()) == (registry.store.log_end().position, before)
    for written in ("stage/rows", "events"):
        assert (s3.bucket / scheme / written / "_SUCCESS").exists()
    with pytest.raises(FileExistsError):
        rebuild(log, partial(rebuild_store, registry.store, None), events=events)
    lake = Lake(spark, "parquet", f"{scheme}://{BUCKET}/{scheme}/lake")
    append(lake, from_segments(spark, s3.uri(scheme, f"{scheme}/annals")), ["interactions"])
    assert lake.table("interactions").position() == report.position


@pytest.mark.parametrize(
    ("uri", "taken"),
    [
        ("s3://key:secret@lake/a%20b?region=x", "s3a://lake/a b"),
        ("hdfs://n:8020/a/", "hdfs://n:8020/a"),
        ("abfs://lake@account/a", "abfs://lake@account/a"),
        ("file:///a%20b", "file:///a b"),
        ("/a%20b", "file:///a%20b"),
    ],
)
def test_s3_uris_for_spark(uri: str, taken: str) -> None:
    # without secrets, because Spark shows its paths in plans and logs
    assert spark_uri(uri) == taken


def test_an_unreachable_staging_folder_is_reported_early(spark: SparkSession, sqlite_url: str) -> None:
    with Registry(sqlite_url) as registry:
        record_interactions(registry, 1)
        log = spark.range(1).selectExpr("raise_error('read') AS last")
        with pytest.raises(ValueError, match="nowhere"):
            rebuild(log, partial(rebuild_store, registry.store, None), stage="nowhere://a/b")
