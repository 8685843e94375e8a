"""The log directly from a registry's PostgreSQL database, over JDBC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import StringType
from sqlalchemy import make_url

from annals.projections.log.documents import document_content
from annals.projections.log.table_rows import state_text
from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.log_schema import LOG_SCHEMA, LogHead
from annals.spark_projections.verify_log import LOG_START

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

#: Positions per task, and rows per fetch.
PARTITION_SIZE: Final = 50_000
FETCH_SIZE: Final = 1000

_DEFAULT_PORT: Final = 5432
_LOG_END: Final = (
    "(SELECT coalesce(max(last), 0) AS last, (SELECT value FROM store WHERE key = 'archive') AS archive,"
    " (SELECT value FROM store WHERE key = 'schema') AS schema FROM interaction{until}) AS ended"
)
_ARCHIVE_END: Final = "(SELECT coalesce(max(last), 0) AS last FROM archived_segment) AS archived"
# A lateral look-up by key per event: a join by range would compare every pair.
_LOG_ROWS: Final = """(
SELECT log.position, log.stream, log.revision, log.topic, log.state,
  i.first, i.last, i.xregcorrelationid, i.time, i.caller, i.command, i.registry_url, i.chain, i.state AS statehash,
  i.salt, {credential}
FROM log CROSS JOIN LATERAL (SELECT * FROM interaction WHERE last >= log.position ORDER BY last LIMIT 1) AS i
WHERE log.position > {after} AND log.position <= {last}) AS rows"""
#: The columns that a store has from a schema on, and what takes their place in an older one.
_CREDENTIAL_SCHEMA: Final = 8
_CREDENTIAL: Final = "i.authenticator, i.keyid"
_NO_CREDENTIAL: Final = "'' AS authenticator, '' AS keyid"
_DOCUMENTS: Final = "SELECT sha256, bytes FROM document"


def read(
    spark: SparkSession, database: str, asof: int | None = None, partition: int = PARTITION_SIZE, after: int = 0
) -> DataFrame:
    """The events of whole interactions after a position up to another, by default the end of the log.

    The position is resolved once. The log up to it never changes, so all tasks read the same state.
    database: a URL as in the server's settings, `postgresql://user:password@host/name`. partition: positions per task.
    Raises: ValueError when the archive of the store has some of them.
    """
    reader = _reader(spark, database)
    end_condition = "" if asof is None else f" WHERE last <= {int(asof)}"
    log_end, archive, schema = reader.option("dbtable", _LOG_END.format(until=end_condition)).load().collect()[0]
    if archive is not None and after < reader.option("dbtable", _ARCHIVE_END).load().collect()[0]["last"]:
        raise ValueError(
            f"a part of the log is in the archive {archive}, which this source does not read: read segments, which"
            " `annals segments write` writes, or the registry over HTTP"
        )
    read_options: dict[str, str | int] = {
        "dbtable": _LOG_ROWS.format(
            after=int(after),
            last=log_end,
            credential=_CREDENTIAL if int(schema) >= _CREDENTIAL_SCHEMA else _NO_CREDENTIAL,
        ),
        "partitionColumn": "position",
        "lowerBound": after + 1,
        "upperBound": max(after, log_end) + 1,
        "numPartitions": max(1, -(-(log_end - after) // partition)),
        "fetchsize": FETCH_SIZE,
    }
    log = _reader(spark, database).options(**read_options).load().select(*LOG_SCHEMA.names)
    # A function of one column: a query without that column neither reads nor decompresses it.
    return log.withColumn("state", f.udf(state_text, StringType(), useArrow=True)("state"))


def chain_at(spark: SparkSession, database: str, position: int) -> str | None:
    """The chain hash in hex of the interaction with the event at a position; None where the log ends before."""
    where = f"WHERE last >= {int(position)} ORDER BY last LIMIT 1"
    rows = query(spark, database, f"SELECT chain FROM interaction {where}").head(1)
    return bytes(rows[0][0]).hex() if rows else None


def end(spark: SparkSession, database: str) -> LogHead:
    """The end of the log."""
    rows = query(spark, database, "SELECT last, chain FROM interaction ORDER BY last DESC LIMIT 1").head(1)
    return LogHead(rows[0][0], bytes(rows[0][1]).hex()) if rows else LOG_START


def documents(spark: SparkSession, database: str, hashes: Sequence[str] | None = None) -> DataFrame:
    """Documents of the registry as `sha256` and `content`: those with some hashes, or all."""
    found = query(spark, database, _DOCUMENTS)
    if hashes is not None:  # the database filters by them
        found = found.where(f.col("sha256").isin(*hashes) if hashes else f.lit(False))
    return found.mapInArrow(_to_contents, "sha256 string, content binary")


def query(spark: SparkSession, database: str, sql: str) -> DataFrame:
    """The result of one SELECT, which the database runs again whenever the rows are read."""
    return _reader(spark, database).option("query", sql).load()


def _to_contents(batches: Batches) -> Batches:
    for batch in batches:
        hashes, stored = (batch.column(name).to_pylist() for name in ("sha256", "bytes"))
        contents = [document_content(*one) for one in zip(hashes, stored, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(hashes, pa.string()), pa.array(contents, pa.binary())], ["sha256", "content"]
        )


def _reader(spark: SparkSession, database: str) -> DataFrameReader:
    url = make_url(database)
    parameters = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    hosts = parameters.pop("host", url.host or "localhost").split(",")
    ports = parameters.pop("port", str(url.port or _DEFAULT_PORT)).split(",")
    places = zip(hosts, ports if len(ports) == len(hosts) else ports[:1] * len(hosts), strict=True)
    servers = ",".join(f"{host}:{port or _DEFAULT_PORT}" for host, port in places)
    jdbc_options = {
        "url": f"jdbc:postgresql://{servers}/{url.database or ''}?{urlencode(parameters)}",
        "driver": "org.postgresql.Driver",
        "user": url.username,
        "password": url.password,
    }
    return spark.read.format("jdbc").options(
        **{name: value for name, value in jdbc_options.items() if value is not None}
    )
