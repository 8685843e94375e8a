"""The log straight from a registry's PostgreSQL database, by JDBC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from sqlalchemy import make_url

from spark_projections.log_schema import LOG_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

#: Positions of one task, and rows that are on their way together.
PARTITION_SIZE: Final = 50_000
FETCH_SIZE: Final = 1000

_PORT: Final = 5432
_END: Final = "(SELECT coalesce(max(last), 0) AS last FROM interaction{until}) AS ended"
# Each event looks its interaction up by the key: a join by ranges would compare every pair.
_ROWS: Final = """(
SELECT log.position, log.stream, log.revision, log.topic, convert_from(log.state, 'UTF8') AS state,
  i.first, i.last, i.xregcorrelationid, i.time, i.caller, i.command, i.registry_url, i.chain, i.state AS statehash,
  i.salt
FROM log CROSS JOIN LATERAL (SELECT * FROM interaction WHERE last >= log.position ORDER BY last LIMIT 1) AS i
WHERE log.position <= {last}) AS rows"""


def read(spark: SparkSession, database: str, asof: int | None = None, partition: int = PARTITION_SIZE) -> DataFrame:
    """The events of whole interactions up to a position, the end of the log unless given.

    That position is looked up once, and what the log holds up to it never changes, so all tasks see one moment.
    database: a URL as the server takes it, `postgresql://user:password@host/name`. partition: positions of one task.
    """
    reader = _reader(spark, database)
    until = "" if asof is None else f" WHERE last <= {int(asof)}"
    last: int = reader.option("dbtable", _END.format(until=until)).load().collect()[0]["last"]
    ranges: dict[str, str | int] = {
        "dbtable": _ROWS.format(last=last),
        "partitionColumn": "position",
        "lowerBound": 1,
        "upperBound": last + 1,
        "numPartitions": max(1, -(-last // partition)),
        "fetchsize": FETCH_SIZE,
    }
    return _reader(spark, database).options(**ranges).load().select(*LOG_SCHEMA.names)


def query(spark: SparkSession, database: str, sql: str) -> DataFrame:
    """What the database answers to one SELECT, asked anew whenever rows are."""
    return _reader(spark, database).option("query", sql).load()


def _reader(spark: SparkSession, database: str) -> DataFrameReader:
    url = make_url(database)
    parameters = urlencode({name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()})
    told = {
        "url": f"jdbc:postgresql://{url.host or 'localhost'}:{url.port or _PORT}/{url.database or ''}?{parameters}",
        "driver": "org.postgresql.Driver",
        "user": url.username,
        "password": url.password,
    }
    return spark.read.format("jdbc").options(**{name: value for name, value in told.items() if value is not None})
