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

#: What a link has written to another registry through an older API. key: tree key of a Group or a Version here; digest:
#: of what was written; own: 0 where it was there before; place: its path there, empty while it is being written.
sent: Final = Table(
    "replication_sent",
    METADATA,
    Column("link", _TEXT, primary_key=True),
    Column("key", _TEXT, primary_key=True),
    Column("digest", _TEXT, nullable=False),
    Column("own", BigInteger, nullable=False),
    Column("place", _TEXT, nullable=False),
)

#: What a link has been told of by events and has not looked at yet.
heard: Final = Table(
    "replication_heard",
    METADATA,
    Column("link", _TEXT, primary_key=True),
    Column("subject", _TEXT, primary_key=True),
)

LEASES: Final = LeaseTables(process, lease)
