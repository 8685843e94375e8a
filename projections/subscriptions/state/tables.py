"""The tables of deliveries. They are durable state, not a projection: no rebuild touches them (SUB-802).

Times are seconds since 1970. Text compares by code point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, MetaData, Table

from annals.commands.store.database.tables import TEXT
from annals.projections.database.state_database import FORMER_NAME


@dataclass(frozen=True, slots=True)
class LeaseTables:
    """The tables through which processes of one kind share work.

    process: `process` and `until`.
    lease: the id of the leased item, which is the primary key, and `process`.
    """

    process: Table
    lease: Table

    @property
    def id(self) -> str:
        """The name of the column with the ids of leased items."""
        [column] = self.lease.primary_key
        return column.name


TIME: Final = Float(53)


def lease_tables(metadata: MetaData, prefix: str, id: str) -> LeaseTables:
    """The tables for one kind of process, under their own names.

    A process row expires at `until` unless it is renewed. No lease outlives its process row.
    """
    process = Table(
        f"{prefix}_process",
        metadata,
        Column("process", TEXT, primary_key=True),
        Column("until", TIME, nullable=False),
    )
    lease = Table(
        f"{prefix}_lease",
        metadata,
        Column(id, TEXT, primary_key=True),
        Column("process", TEXT, nullable=False),
        Index(f"{prefix}_lease_process", "process"),
    )
    return LeaseTables(process, lease)


METADATA: Final = MetaData()
#: The number of attempts that are kept for each subscription, and the seconds for which they are (UI-111).
ATTEMPT_SLOTS: Final = 1000
ATTEMPT_SECONDS: Final = 7 * 86400.0
#: The outcomes of attempts, which are the values of `DeliveryResult`, in the order of the columns of `hour`.
OUTCOMES: Final = ("delivered", "retry", "rejected", "unauthorized", "gone")

#: The progress of each subscription. revision, position: of the last event of its own stream that was applied.
#: cursor: highest position at or below which nothing is pending. facts: JSON of a `DeliveryRecord`.
state: Final = Table(
    "delivery_state",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("facts", TEXT, nullable=False),
)

#: Events after a cursor that are pending while later events are done. queue: 0 live, 1 replayed, 2 dead letters that
#: are retried. key: ordering key. attempts: number that counted; next: no attempt before this time.
pending: Final = Table(
    "delivery_pending",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("queue", BigInteger, primary_key=True, info={FORMER_NAME: "lane"}),
    Column("sequence", BigInteger, primary_key=True),
    Column("key", TEXT, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("first", TIME),
    Column("next", TIME, nullable=False),
)

#: Events that were given up, by reference (SUB-831). first, last: times of attempts.
deadletter: Final = Table(
    "delivery_deadletter",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("reason", TEXT, nullable=False),
    Column("code", TEXT, nullable=False),
    Column("message", TEXT, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("first", TIME, nullable=False),
    Column("last", TIME, nullable=False),
    Index("delivery_deadletter_last", "last"),
)

#: The last attempts of each subscription, each in the place of the one that was `ATTEMPT_SLOTS` before it (UI-111).
#: number: 1 for the first attempt of all. time: when it began; duration: in seconds; next: of the next attempt.
attempt: Final = Table(
    "delivery_attempt",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("slot", BigInteger, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("time", TIME, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("outcome", TEXT, nullable=False),
    Column("code", TEXT, nullable=False),
    Column("duration", TIME, nullable=False),
    Column("next", TIME),
)

#: The number of attempts in each hour, by their outcomes. hour: since 1970.
hour: Final = Table(
    "delivery_hour",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("hour", BigInteger, primary_key=True),
    *(Column(outcome, BigInteger, nullable=False) for outcome in OUTCOMES),
)

#: Requests to the process that delivers for a subscription: `consent` with the hash of the sink, and a rate.
request: Final = Table(
    "delivery_request",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("value", TEXT, nullable=False),
    info={FORMER_NAME: "delivery_wish"},
)

#: Later than any time. SQLite also stores text in number columns, and orders it after all numbers.
NEVER: Final = 1e15
#: Hashes of callback secrets with which a sink may consent, valid once each (SUB-714).
callback: Final = Table(
    "delivery_callback",
    METADATA,
    Column("digest", TEXT, primary_key=True),
    Column("subscription", TEXT, nullable=False),
    Column("until", TIME, nullable=False),
)

#: The processes that deliver, and the process of each subscription (SUB-805).
LEASES: Final = lease_tables(METADATA, "delivery", "subscription")
