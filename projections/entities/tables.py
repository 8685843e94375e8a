"""The tables of the REST read model.

`entity` has one row for each live entity. `entity_history` has one for each replaced image, with the position that
replaced it. `attribute` has one for each leaf of a live entity, and `attribute_path` numbers the paths of leaves.
`reference` has one for each xid that an image contains the text of.
`published` has one for each Version that was pruned and is retained for the legacy APIs, or that has a URI of its own.
`schema_version` has one for each content of a Version that Confluent's API shows, and `schema_reference` one for each
version that such a content refers to.
A suffix names a second set, which a rebuild fills and renames. Indexes keep their original name, because SQLite cannot
rename them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    inspect,
)
from sqlalchemy.schema import AddConstraint, CreateTable

from annals.commands.store.database.tables import TEXT
from annals.projections.entities.rows import COMPRESSED_ATTRIBUTES
from annals.projections.log.positions import POSITIONS


@dataclass(frozen=True, slots=True, eq=False)
class ReadModelTables:
    """One set of the tables. suffix: of their names."""

    suffix: str
    metadata: MetaData
    entity: Table
    history: Table
    attribute: Table
    path: Table
    published: Table
    schema_version: Table
    schema_reference: Table
    reference: Table

    def exist(self, connection: Connection) -> bool:
        """Whether all exist, with the columns that this program defines."""
        inspector = inspect(connection)
        return all(
            inspector.has_table(table.name)
            and {column["name"] for column in inspector.get_columns(table.name)} == {*table.c.keys()}
            for table in self
        )

    def create(self, connection: Connection) -> None:
        """Creates missing tables and indexes, and the table of positions."""
        POSITIONS.create(connection, checkfirst=True)
        self.metadata.create_all(connection)

    def create_bare(self, connection: Connection) -> None:
        """Creates the tables without `indexes`, which cost less once the rows are inserted."""
        for table in self:
            connection.execute(CreateTable(table))

    def loaded_without_keys(self) -> list[Table]:
        """The tables whose primary keys may be added once they have rows."""
        # The numbers of paths are few, and processes that load leaves at the same time agree on them by the keys.
        return [table for table in self if table is not self.path]

    def indexes(self) -> Iterator[Index]:
        """The indexes besides the primary keys."""
        for table in self:
            yield from sorted(table.indexes, key=lambda index: str(index.name))

    def __iter__(self) -> Iterator[Table]:
        tables = (self.entity, self.history, self.attribute, self.path, self.published)
        return iter((*tables, self.schema_version, self.schema_reference, self.reference))


def drop_primary_keys(connection: Connection, tables: Iterable[Table]) -> None:
    """Drops the primary keys of some tables; SQLite cannot."""
    if connection.dialect.name == "postgresql":
        for table in tables:
            connection.exec_driver_sql(f"ALTER TABLE {table.name} DROP CONSTRAINT {table.name}_pkey")


def add_primary_keys(connection: Connection, tables: Iterable[Table]) -> None:
    """Adds the primary keys that `drop_primary_keys` dropped. Raises: IntegrityError for two rows with one key."""
    if connection.dialect.name == "postgresql":
        for table in tables:
            connection.execute(AddConstraint(table.primary_key))


def pack(connection: Connection, tables: Iterable[Table]) -> None:
    """Rewrites tables in the order of their primary keys, without the space of replaced rows and split pages.

    On PostgreSQL only. No one else may use the tables.
    """
    if connection.dialect.name == "postgresql":
        for table in tables:
            connection.exec_driver_sql(f"CLUSTER {table.name} USING {table.name}_pkey")


@lru_cache(maxsize=8)
def tables(suffix: str = "") -> ReadModelTables:
    """The tables of a set; readers use the one without a suffix."""
    metadata = MetaData()
    return ReadModelTables(
        suffix,
        metadata,
        entity=_entity_table(f"entity{suffix}", metadata),
        history=_history_table(f"entity_history{suffix}", metadata),
        attribute=_attribute_table(f"attribute{suffix}", metadata),
        path=_path_table(f"attribute_path{suffix}", metadata),
        published=_published_table(f"published{suffix}", metadata),
        schema_version=_schema_version_table(f"schema_version{suffix}", metadata),
        schema_reference=_schema_reference_table(f"schema_reference{suffix}", metadata),
        reference=_reference_table(f"reference{suffix}", metadata),
    )


def _entity_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        *_row_columns(),
        PrimaryKeyConstraint("tree_key"),
        # A collection is a range of one type, without the Versions between its Resources.
        Index(f"{name}_by_type", "type", "id_key"),
    )


def _history_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        *_row_columns(),
        Column("until", BigInteger, nullable=False),
        PrimaryKeyConstraint("tree_key", "since"),
        # For a past collection, without its members' descendants; it skips images of other times without reading them.
        Index(f"{name}_by_type", "type", "id_key", "since", "until"),
    )


def _attribute_table(name: str, metadata: MetaData) -> Table:
    # On SQLite the primary key is the table: each leaf is in one B-tree, where equal values are in the order of pages.
    return Table(
        name,
        metadata,
        Column("path", Integer, nullable=False),
        Column("value", LargeBinary, nullable=False),
        Column("id_key", TEXT, nullable=False),
        PrimaryKeyConstraint("path", "value", "id_key"),
        sqlite_with_rowid=False,
    )


def _path_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        Column("number", Integer, nullable=False),
        Column("type", TEXT, nullable=False),
        Column("path", TEXT, nullable=False),
        PrimaryKeyConstraint("number"),
        UniqueConstraint("type", "path"),
    )


def _published_table(name: str, metadata: MetaData) -> Table:
    table = Table(
        name,
        metadata,
        Column("tree_key", TEXT, nullable=False),
        Column("born", BigInteger, nullable=False),
        Column("xid", Text, nullable=False),
        Column("number", BigInteger, nullable=False),
        Column("id", TEXT),
        Column("uri", TEXT),
        Column("since", BigInteger),
        Column("pruned", BigInteger),
        Column("gone", BigInteger),
        PrimaryKeyConstraint("tree_key", "born"),
    )
    for key in ("id", "uri"):
        where = table.c[key].is_not(None)
        Index(f"{name}_by_{key}", key, "tree_key", sqlite_where=where, postgresql_where=where)
    return table


def _schema_version_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        Column("tree_key", TEXT, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("xid", Text, nullable=False),
        Column("subject", TEXT, nullable=False),
        Column("subject_hash", BigInteger, nullable=False),
        Column("number", BigInteger, nullable=False),
        Column("id", BigInteger, nullable=False),
        Column("key", TEXT, nullable=False),
        Column("guid", TEXT, nullable=False),
        Column("type", TEXT, nullable=False),
        Column("document", LargeBinary, nullable=False),
        Column("extras", Text, nullable=False),
        Column("replaced", BigInteger),
        Column("deleted", BigInteger),
        Column("gone", BigInteger),
        PrimaryKeyConstraint("tree_key", "since"),
        Index(f"{name}_by_subject", "subject_hash", "number"),
        Index(f"{name}_by_id", "id"),
        Index(f"{name}_by_key", "key", "id"),
        Index(f"{name}_by_guid", "guid"),
    )


def _schema_reference_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        Column("subject_hash", BigInteger, nullable=False),
        Column("number", BigInteger, nullable=False),
        Column("tree_key", TEXT, nullable=False),
        Column("since", BigInteger, nullable=False),
        PrimaryKeyConstraint("subject_hash", "number", "tree_key", "since"),
    )


def _reference_table(name: str, metadata: MetaData) -> Table:
    # On SQLite the primary key is the table, which has all that a look-up reads.
    return Table(
        name,
        metadata,
        Column("target", TEXT, nullable=False),
        Column("tree_key", TEXT, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("until", BigInteger),
        PrimaryKeyConstraint("target", "tree_key", "since"),
        sqlite_with_rowid=False,
    )


def _row_columns() -> list[Column[object]]:
    return [
        Column("tree_key", TEXT, nullable=False),
        Column("xid", Text, nullable=False),
        Column("type", TEXT, nullable=False),
        Column("id_key", TEXT, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column(COMPRESSED_ATTRIBUTES, LargeBinary, nullable=False),
        Column("private", Text, nullable=False),
        Column("document", Text),
        Column("since", BigInteger, nullable=False),
        Column("born", BigInteger),
        Column("meta", BigInteger, nullable=False),
    ]
