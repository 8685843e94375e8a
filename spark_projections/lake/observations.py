"""The rows of the tables that a log does not determine, from what a running registry says about itself.

A row is one subscription or one link at one moment. Nothing is merged: two looks at the same state are two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from annals.spark_projections.lake.tables import DELIVERIES, OBSERVATIONS, REPLICATION
from annals.spark_projections.sources.remote_log import RemoteLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def observe(spark: SparkSession, url: str, token: str | None, taken: datetime) -> dict[str, DataFrame]:
    """One row for each subscription and each link that the caller may see, by table; no table without rows.

    taken: the time of the rows. Raises: RemoteLogError.
    """
    remote = RemoteLog(url, token)
    head = remote.head().position
    return observed_rows(spark, head, remote.members("/subscriptions"), remote.members("/-/links"), taken)


def observed_rows(
    spark: SparkSession,
    head: int,
    subscriptions: Iterable[Mapping[str, Any]],
    links: Iterable[Mapping[str, Any]],
    taken: datetime,
) -> dict[str, DataFrame]:
    """The rows by table, of tables that have any. subscriptions, links: as the registry's API shows them."""
    shared = {"taken": taken, "head": head, "month": taken.strftime("%Y-%m")}
    found = {
        DELIVERIES: [_delivery(one) for one in subscriptions],
        REPLICATION: [_link(one) for one in links],
    }
    return {
        name: spark.createDataFrame(
            [tuple((shared | row).get(column) for column in OBSERVATIONS[name].names) for row in rows],
            OBSERVATIONS[name].schema,
        )
        for name, rows in found.items()
        if rows
    }


def _delivery(subscription: Mapping[str, Any]) -> dict[str, Any]:
    status = subscription.get("status", {})
    error = status.get("lasterror") or {}
    return {
        "subscription": subscription["id"],
        "protocol": subscription.get("protocol"),
        **{name: status.get(name) for name in ("state", "position", "lag", "pending", "deadletters")},
        "lastsuccess": _time(status.get("lastsuccess")),
        "lasterror": str(error.get("code")) if error.get("code") is not None else None,
    }


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    status = link.get("status", {})
    lag, error = status.get("lag") or {}, status.get("error")
    return {
        "link": link["id"],
        **{name: status.get(name) for name in ("state", "position", "verdict")},
        "otherhead": (status.get("head") or {}).get("position"),
        "lag": lag.get("positions"),
        "lagseconds": float(lag["seconds"]) if "seconds" in lag else None,
        "error": str(error) if error else None,
    }


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
