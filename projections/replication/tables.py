"""The tables of replication. They are durable state, not a projection: no rebuild touches them.

Text compares by code point.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, MetaData, Table

from annals.commands.store.database.tables import TEXT
from annals.projections.database.state_database import FORMER_NAME
from annals.projections.subscriptions.state.tables import lease_tables

METADATA: Final = MetaData()

#: The progress of each link. cursor: position of the other registry's log up to which all is imported. facts: JSON.
state: Final = Table(
    "replication_state",
    METADATA,
    Column("link", TEXT, primary_key=True),
    Column("cursor", BigInteger, nullable=False),
    Column("facts", TEXT, nullable=False),
)

#: What a link has written to another registry through a legacy API. key: tree key of a local Group or Version. digest:
#: of what was written. own: 0 if it existed before. place: its remote path, empty while it is being written; then `#`
#: and what identifies it there, if that is known; see `annals.projections.replication.compat.sent_objects`.
sent: Final = Table(
    "replication_sent",
    METADATA,
    Column("link", TEXT, primary_key=True),
    Column("key", TEXT, primary_key=True),
    Column("digest", TEXT, nullable=False),
    Column("own", BigInteger, nullable=False),
    Column("place", TEXT, nullable=False),
)

#: Subjects of events that a link has received and not handled yet.
subject: Final = Table(
    "replication_subject",
    METADATA,
    Column("link", TEXT, primary_key=True),
    Column("subject", TEXT, primary_key=True),
    info={FORMER_NAME: "replication_heard"},
)

#: The processes that run links, and the process of each link.
LEASES: Final = lease_tables(METADATA, "replication", "link")
