"""The tables of replication. They are no projection: no rebuild touches them.

Times are seconds since 1970. Text compares by code point.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

from projections.subscriptions.tables import LeaseTables

METADATA: Final = MetaData()

_TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_TIME = Float(53)

#: How far each link is. cursor: position of the other registry's log up to which all was taken in. facts: JSON.
state: Final = Table(
    "replication_state",
    METADATA,
    Column("link", _TEXT, primary_key=True),
    Column("cursor", BigInteger, nullable=False),
    Column("facts", _TEXT, nullable=False),
)

#: Processes that follow other logs, each until a time unless it says so again.
process: Final = Table(
    "replication_process",
    METADATA,
    Column("process", _TEXT, primary_key=True),
    Column("until", _TIME, nullable=False),
)

#: Which process follows the log of a link; there is no row of a process that is gone.
lease: Final = Table(
    "replication_lease",
    METADATA,
    Column("link", _TEXT, primary_key=True),
    Column("process", _TEXT, nullable=False),
    Index("replication_lease_process", "process"),
)

LEASES: Final = LeaseTables(process, lease)
