"""The tables of replication. They are no projection: no rebuild touches them.

Text compares by code point.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, MetaData, Table

from commands.store.tables import TEXT
from projections.subscriptions.state.tables import lease_tables

METADATA: Final = MetaData()

#: How far each link is. cursor: position of the other registry's log up to which all was taken in. facts: JSON.
state: Final = Table(
    "replication_state",
    METADATA,
    Column("link", TEXT, primary_key=True),
    Column("cursor", BigInteger, nullable=False),
    Column("facts", TEXT, nullable=False),
)

#: What a link has written to another registry through an older API. key: tree key of a Group or a Version here; digest:
#: of what was written; own: 0 where it was there before; place: its path there, empty while it is being written.
sent: Final = Table(
    "replication_sent",
    METADATA,
    Column("link", TEXT, primary_key=True),
    Column("key", TEXT, primary_key=True),
    Column("digest", TEXT, nullable=False),
    Column("own", BigInteger, nullable=False),
    Column("place", TEXT, nullable=False),
)

#: What a link has been told of by events and has not looked at yet.
heard: Final = Table(
    "replication_heard",
    METADATA,
    Column("link", TEXT, primary_key=True),
    Column("subject", TEXT, primary_key=True),
)

#: Processes that run links, and which of them runs one.
LEASES: Final = lease_tables(METADATA, "replication", "link")
