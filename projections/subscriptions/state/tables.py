"""The tables of deliveries. They are no projection: no rebuild touches them (SUB-802).

Times are seconds since 1970. Text compares by code point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, MetaData, Table

from commands.store.tables import TEXT


@dataclass(frozen=True, slots=True)
class LeaseTables:
    """Where processes of one kind, and nobody else, find each other.

    process: `process` and `until`. lease: the id of what is leased, which is its primary key, and `process`.
    """

    process: Table
    lease: Table

    @property
    def id(self) -> str:
        """The name of the column with the ids of what is leased."""
        [column] = self.lease.primary_key
        return column.name


TIME: Final = Float(53)


def lease_tables(metadata: MetaData, prefix: str, id: str) -> LeaseTables:
    """The tables of one kind of processes, under names of their own.

    A process is there until a time unless it says so again; there is no lease of a process that is gone.
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

#: How far each subscription is. revision, position: of the last event of its own that deliveries have taken in.
#: cursor: highest position below which, itself included, nothing is pending. facts: JSON, see `facts.Facts`.
state: Final = Table(
    "delivery_state",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("facts", TEXT, nullable=False),
)

#: Events beyond a cursor that wait while others behind them are done. lane: 0 as they come, 1 replayed, 2 dead letters
#: that are tried again. key: what keeps them in order. attempts: that counted; next: no attempt before.
pending: Final = Table(
    "delivery_pending",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("lane", BigInteger, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("key", TEXT, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("first", TIME),
    Column("next", TIME, nullable=False),
)

#: Events that nobody tries to deliver any more, by reference (SUB-831). first, last: times of attempts.
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

#: What others want of the process that delivers for a subscription: `consent` with a rate.
wish: Final = Table(
    "delivery_wish",
    METADATA,
    Column("subscription", TEXT, primary_key=True),
    Column("name", TEXT, primary_key=True),
    Column("value", TEXT, nullable=False),
)

#: Later than any time. SQLite keeps texts in columns of numbers, too, and orders them behind all of these.
NEVER: Final = 1e15
#: Secrets of callbacks that a sink may consent at, hashed, once each (SUB-714).
callback: Final = Table(
    "delivery_callback",
    METADATA,
    Column("digest", TEXT, primary_key=True),
    Column("subscription", TEXT, nullable=False),
    Column("until", TIME, nullable=False),
)

#: Processes that deliver, and which of them for a subscription (SUB-805).
LEASES: Final = lease_tables(METADATA, "delivery", "subscription")
