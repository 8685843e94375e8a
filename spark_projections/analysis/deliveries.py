"""The current state of deliveries, read from the registry's database; the log does not contain it.

A successful delivery only moves the cursor of its subscription. So there are no rows for successes, and no history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from annals.projections.subscriptions.sequence import MAX_MESSAGES_PER_POSITION
from annals.spark_projections.sources.postgres import query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Each is one statement, so the values of a row belong to one moment.
_DELIVERIES: Final = """
SELECT s.subscription, least(s.cursor, head.position) AS position, head.position AS headposition,
  head.position - least(s.cursor, head.position) AS lag, (f.facts ->> 'pending')::bigint AS pending,
  (SELECT count(*) FROM delivery_deadletter AS d WHERE d.subscription = s.subscription) AS deadletters,
  coalesce(nullif(f.facts ->> 'state', ''), 'active') AS state, (f.facts ->> 'retrying')::boolean AS retrying,
  {lastsuccess} AS lastsuccess, {lastattempt} AS lastattempt, {nextattempt} AS nextattempt,
  f.facts -> 'lasterror' ->> 'code' AS lasterror, {lasterror} AS lasterror_time
FROM delivery_state AS s CROSS JOIN LATERAL (SELECT s.facts::json AS facts) AS f
  CROSS JOIN (SELECT coalesce(max(last), 0) AS position FROM interaction) AS head"""
_DEADLETTERS: Final = """
SELECT subscription, sequence / {most} AS position,
  lpad((sequence / {most})::text, 20, '0') || '.' || lpad((sequence % {most})::text, 2, '0') AS sequence,
  reason, code, attempts, {first} AS firstattempt, {last} AS lastattempt
FROM delivery_deadletter"""
#: Rounds like the server. Multiplying all seconds by a million would lose the digits that decide the microsecond.
_TIMESTAMP: Final = (
    "to_timestamp(floor({seconds})) + round(({seconds} - floor({seconds})) * 1000000) * interval '1 microsecond'"
)
_RECORD_TIME: Final = "nullif((f.facts {path})::float8, 0)"
_HAS_TABLES: Final = (
    "SELECT to_regclass('delivery_state') IS NOT NULL AND to_regclass('delivery_deadletter') IS NOT NULL AS t"
)


def deliveries(spark: SparkSession, database: str) -> DataFrame:
    """One row for each subscription that ever had something to deliver; `position` is how far its deliveries are.

    database: a URL as in the server's settings, `postgresql://user:password@host/name`.
    """
    paths = {name: f"->> '{name}'" for name in ("lastsuccess", "lastattempt", "nextattempt")}
    paths["lasterror"] = "-> 'lasterror' ->> 'time'"
    times = {name: _TIMESTAMP.format(seconds=_RECORD_TIME.format(path=path)) for name, path in paths.items()}
    return query(spark, database, _DELIVERIES.format(**times))


def deadletters(spark: SparkSession, database: str) -> DataFrame:
    """One row for each dead letter: an event whose delivery is no longer attempted, with the event's position."""
    times = {name: _TIMESTAMP.format(seconds=name) for name in ("first", "last")}
    return query(spark, database, _DEADLETTERS.format(most=MAX_MESSAGES_PER_POSITION, **times))


def register(spark: SparkSession, database: str) -> None:
    """Registers both tables as temporary views; drops the views where the registry never had a subscription."""
    has_tables = query(spark, database, _HAS_TABLES).collect()[0][0]
    for table in (deliveries, deadletters):
        if has_tables:
            table(spark, database).createOrReplaceTempView(table.__name__)
        else:
            spark.catalog.dropTempView(table.__name__)  # the view of another registry
