"""The tables of the write side: the permanent data, and `head`, which points at the last event of each stream.

Text compares by code point (C collation on PostgreSQL), so plain string order of tree keys is tree order.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

METADATA: Final = MetaData()
#: Stored in `store` under `schema`; the program refuses a store with another value.
SCHEMA: Final = "8"

# Only a column declared INTEGER is SQLite's own row number, which saves an index.
_POSITION = BigInteger().with_variant(Integer, "sqlite")
#: Text that compares by code point, like tree keys and ids everywhere.
TEXT: Final = Text().with_variant(Text(collation="C"), "postgresql")

#: Every event, by position: 1, 2, 3 ... without gaps, in commit order. state: JSON, see `annals.commands.store.mapper`;
#: most are compressed, see `annals.commands.store.compression.state_compression`. It is empty where only the archive
#: has the state, see `annals.commands.store.archive.state_reader`.
log: Final = Table(
    "log",
    METADATA,
    Column("position", _POSITION, primary_key=True, autoincrement=False),
    Column("stream", TEXT, nullable=False),
    Column("revision", _POSITION, nullable=False),
    Column("topic", TEXT, nullable=False),
    Column("state", LargeBinary, nullable=False),
    UniqueConstraint("stream", "revision", name="log_stream"),
)

#: The last event of each stream, including streams of deleted entities. hash: SHA-256 of the entity's image, empty once
#: deleted. xref: xid of the Resource that an xref points to.
head: Final = Table(
    "head",
    METADATA,
    Column("tree_key", TEXT, primary_key=True),
    Column("position", _POSITION, nullable=False),
    Column("revision", _POSITION, nullable=False),
    Column("xid", TEXT, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("live", Boolean, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("xref", TEXT),
    Index("head_sources", "xref", sqlite_where=text("xref IS NOT NULL"), postgresql_where=text("xref IS NOT NULL")),
    # All entities of a type in tree order, so the members of a collection too: one range of tree keys.
    Index("head_types", "type", "tree_key", sqlite_where=text("live"), postgresql_where=text("live")),
    sqlite_with_rowid=False,
)

#: One row for each interaction that recorded something. folded: the correlation id case-folded. time: RFC 3339 in UTC
#: with six digits, so that text order is time order. chain, state, salt, authenticator, keyid: see
#: `annals.commands.store.hashes`. The table of an older store has its columns in the same order, without the last ones.
interaction: Final = Table(
    "interaction",
    METADATA,
    Column("last", _POSITION, primary_key=True, autoincrement=False),
    Column("first", _POSITION, nullable=False),
    Column("xregcorrelationid", TEXT, nullable=False),
    Column("folded", TEXT, nullable=False, unique=True),
    Column("time", TEXT, nullable=False, index=True),
    Column("caller", TEXT, nullable=False),
    Column("command", TEXT, nullable=False),
    Column("registry_url", TEXT, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("salt", TEXT, nullable=False, server_default=""),
    Column("authenticator", TEXT, nullable=False, server_default=""),
    Column("keyid", TEXT, nullable=False, server_default=""),
)

#: Each document once. sha256: of its bytes, lower-case hex. bytes: compressed if that is shorter, see
#: `annals.commands.store.compression.document_compression`.
document: Final = Table(
    "document",
    METADATA,
    Column("sha256", TEXT, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)

#: Encrypted secret values, to which the log refers; see `annals.commands.store.secrets`. owner: xid of the owner.
secret: Final = Table(
    "secret",
    METADATA,
    Column("reference", TEXT, primary_key=True),
    Column("owner", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    Column("wrapped", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

#: The segments of the archive, which follow each other from position 1. first, last: positions. path: of the file in
#: the archive. bytes, sha256: of the file, the hash in lower-case hex. The setting `archive` in `store` is the place.
archived_segment: Final = Table(
    "archived_segment",
    METADATA,
    Column("last", _POSITION, primary_key=True, autoincrement=False),
    Column("first", _POSITION, nullable=False),
    Column("path", TEXT, nullable=False),
    Column("bytes", _POSITION, nullable=False),
    Column("sha256", TEXT, nullable=False),
)

#: Settings of the store itself.
store: Final = Table(
    "store",
    METADATA,
    Column("key", TEXT, primary_key=True),
    Column("value", TEXT, nullable=False),
    sqlite_with_rowid=False,
)
