"""How deliveries stand: what the database of a registry knows of it now, as no log does.

A delivery that succeeds leaves nothing but a cursor that has moved on, so there is no row for it anywhere, and no past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from projections.subscriptions.sequence import MAX_MESSAGES_PER_POSITION
from spark_projections.sources.postgres import query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# One statement each, so what stands in a row was true at one moment.
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
#: As the server rounds it: a product with all the seconds has no digit left to tell which microsecond is nearer.
_MOMENT: Final = (
    "to_timestamp(floor({seconds})) + round(({seconds} - floor({seconds})) * 1000000) * interval '1 microsecond'"
)
_FACT: Final = "nullif((f.facts {path})::float8, 0)"
_THERE: Final = (
    "SELECT to_regclass('delivery_state') IS NOT NULL AND to_regclass('delivery_deadletter') IS NOT NULL AS t"
)


def deliveries(spark: SparkSession, database: str) -> DataFrame:
    """One row for each subscription that something was to be delivered for; `position` is how far that is.

    database: a URL as the server takes it, `postgresql://user:password@host/name`.
    """
    paths = {name: f"->> '{name}'" for name in ("lastsuccess", "lastattempt", "nextattempt")}
    paths["lasterror"] = "-> 'lasterror' ->> 'time'"
    times = {name: _MOMENT.format(seconds=_FACT.format(path=path)) for name, path in paths.items()}
    return query(spark, database, _DELIVERIES.format(**times))


def deadletters(spark: SparkSession, database: str) -> DataFrame:
    """One row for each event that nobody tries to deliver any more; `position` is that of the stored event."""
    times = {name: _MOMENT.format(seconds=name) for name in ("first", "last")}
    return query(spark, database, _DEADLETTERS.format(most=MAX_MESSAGES_PER_POSITION, **times))


def register(spark: SparkSession, database: str) -> None:
    """Makes both temporary views of their names; none where the registry never had a subscription."""
    there = query(spark, database, _THERE).collect()[0][0]
    for table in (deliveries, deadletters):
        if there:
            table(spark, database).createOrReplaceTempView(table.__name__)
        else:
            spark.catalog.dropTempView(table.__name__)  # that of another registry
