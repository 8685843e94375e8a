"""Tables of what a log does not say: how far deliveries and replicas were, each time that somebody looked.

A row is one subscription or one link at one moment. Nothing is merged: two looks at the same state are two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from annals.spark_projections.lake.tables import LakeColumn, LakeTable
from annals.spark_projections.sources.remote_log import RemoteLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TAKEN: Final = (
    LakeColumn("taken", "timestamp", "when the registry was asked"),
    LakeColumn("head", "bigint", "end of the registry's log at that time"),
)
_MONTH: Final = LakeColumn("month", "string", "month of `taken` in UTC; divides the files")

DELIVERIES: Final = LakeTable(
    "deliveries",
    "Each subscription at each moment at which the registry was asked.",
    (
        *_TAKEN,
        LakeColumn("subscription", "string", "id of the subscription"),
        LakeColumn("protocol", "string", "protocol of its sink"),
        LakeColumn("state", "string", "`active`, `paused`, or why there are no attempts"),
        LakeColumn("position", "bigint", "up to which all its events are delivered or given up"),
        LakeColumn("lag", "bigint", "positions between that and the head"),
        LakeColumn("pending", "bigint", "events that wait"),
        LakeColumn("deadletters", "bigint", "events that are given up"),
        LakeColumn("lastsuccess", "timestamp", "time of the last delivery"),
        LakeColumn("lasterror", "string", "code of the last failure; null after a success"),
        _MONTH,
    ),
    sort=("subscription", "taken"),
    partition="month",
)
REPLICATION: Final = LakeTable(
    "replication",
    "Each replication link at each moment at which the registry was asked.",
    (
        *_TAKEN,
        LakeColumn("link", "string", "id of the link"),
        LakeColumn("state", "string", "`active`, `failing`, `diverged`, `resting` or `promoted`"),
        LakeColumn("position", "bigint", "up to which the other log is copied"),
        LakeColumn("otherhead", "bigint", "end of the other log, as far as it is known"),
        LakeColumn("lag", "bigint", "positions that the copy lacks"),
        LakeColumn("lagseconds", "double", "seconds between the last copied interaction and the end of the other log"),
        LakeColumn("verdict", "string", "whether both ends are `equal`; null for links that do not follow a log"),
        LakeColumn("error", "string", "the last failure; null after a success"),
        _MONTH,
    ),
    sort=("link", "taken"),
    partition="month",
)
#: The tables by name.
OBSERVATIONS: Final = {table.name: table for table in (DELIVERIES, REPLICATION)}


def observe(spark: SparkSession, url: str, token: str | None, taken: datetime) -> dict[str, DataFrame]:
    """One row for each subscription and each link that the caller may see, by table.

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
    """The rows by table. subscriptions, links: as the registry's API shows them."""
    shared = {"taken": taken, "head": head, "month": taken.strftime("%Y-%m")}
    found = {
        DELIVERIES.name: [_delivery(one) for one in subscriptions],
        REPLICATION.name: [_link(one) for one in links],
    }
    return {
        name: spark.createDataFrame(
            [tuple((shared | row).get(column) for column in OBSERVATIONS[name].names) for row in rows],
            OBSERVATIONS[name].schema,
        )
        for name, rows in found.items()
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
