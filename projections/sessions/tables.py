"""The tables of sessions. They are durable state, not a projection: no rebuild touches them.

Times are in seconds since 1970. No column has a value with which somebody could call the registry.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, LargeBinary, MetaData, Table

from annals.commands.store.database.tables import TEXT

METADATA: Final = MetaData()

#: Each session, by the SHA-256 of its id. authenticator: of the credential that began it. reference: a hash of what
#: identifies this credential in its list. name: of its caller. caller: JSON. used: about its last request. ends: when
#: it ends whatever its use. checked: when its provider was last asked. wrapped, sealed: the provider's tokens,
#: encrypted; else empty.
session: Final = Table(
    "session",
    METADATA,
    Column("hash", TEXT, primary_key=True),
    Column("authenticator", TEXT, nullable=False),
    Column("reference", TEXT, nullable=False),
    Column("name", TEXT, nullable=False, index=True),
    Column("caller", TEXT, nullable=False),
    Column("used", BigInteger, nullable=False),
    Column("ends", BigInteger, nullable=False),
    Column("checked", BigInteger, nullable=False),
    Column("wrapped", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

#: Sign-ins at a provider that have been completed, by a hash of their `state`, so that none is completed twice. ends:
#: when the state expires.
used_state: Final = Table(
    "session_used_state",
    METADATA,
    Column("hash", TEXT, primary_key=True),
    Column("ends", BigInteger, nullable=False),
)

#: The one key that signs cookies, which all processes share. It opens nothing by itself.
cookie_key: Final = Table(
    "session_key",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", LargeBinary, nullable=False),
)
