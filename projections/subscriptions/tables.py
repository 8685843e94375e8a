"""The tables of deliveries. They are no projection: no rebuild touches them (SUB-802).

Times are seconds since 1970. Text compares by code point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, MetaData, Table, Text
from sqlalchemy.dialects import postgresql


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


METADATA: Final = MetaData()

_TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_TIME = Float(53)

#: How far each subscription is. revision, position: of the last event of its own that deliveries have taken in.
#: cursor: highest position below which, itself included, nothing is pending. facts: JSON, see `facts.Facts`.
state: Final = Table(
    "delivery_state",
    METADATA,
    Column("subscription", _TEXT, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("cursor", BigInteger, nullable=False),
    Column("facts", _TEXT, nullable=False),
)

#: Events beyond a cursor that wait while others behind them are done. lane: 0 as they come, 1 replayed, 2 dead letters
#: that are tried again. key: what keeps them in order. attempts: that counted; next: no attempt before.
pending: Final = Table(
    "delivery_pending",
    METADATA,
    Column("subscription", _TEXT, primary_key=True),
    Column("lane", BigInteger, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("key", _TEXT, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("first", _TIME),
    Column("next", _TIME, nullable=False),
)

#: Events that nobody tries to deliver any more, by reference (SUB-831). first, last: times of attempts.
deadletter: Final = Table(
    "delivery_deadletter",
    METADATA,
    Column("subscription", _TEXT, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("reason", _TEXT, nullable=False),
    Column("code", _TEXT, nullable=False),
    Column("message", _TEXT, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("first", _TIME, nullable=False),
    Column("last", _TIME, nullable=False),
    Index("delivery_deadletter_last", "last"),
)

#: What others want of the process that delivers for a subscription: `consent` with a rate.
wish: Final = Table(
    "delivery_wish",
    METADATA,
    Column("subscription", _TEXT, primary_key=True),
    Column("name", _TEXT, primary_key=True),
    Column("value", _TEXT, nullable=False),
)

#: Secrets of callbacks that a sink may consent at, hashed, once each (SUB-714).
callback: Final = Table(
    "delivery_callback",
    METADATA,
    Column("digest", _TEXT, primary_key=True),
    Column("subscription", _TEXT, nullable=False),
    Column("until", _TIME, nullable=False),
)

#: Processes that deliver, each until a time unless it says so again (SUB-805).
process: Final = Table(
    "delivery_process",
    METADATA,
    Column("process", _TEXT, primary_key=True),
    Column("until", _TIME, nullable=False),
)

#: Which process delivers for a subscription; there is no row of a process that is gone.
lease: Final = Table(
    "delivery_lease",
    METADATA,
    Column("subscription", _TEXT, primary_key=True),
    Column("process", _TEXT, nullable=False),
    Index("delivery_lease_process", "process"),
)

LEASES: Final = LeaseTables(process, lease)
