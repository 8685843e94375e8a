"""The tables of the REST read model.

`entity` has one row for each live entity. `entity_history` has one for each replaced image, with the position that
replaced it. `attribute` has one for each leaf of a live entity. `published` has one for each Version that was pruned
and is retained for the legacy APIs, or that has a URI of its own. A suffix names a second set, which a rebuild fills
and renames. Indexes keep their original name, because SQLite cannot rename them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Double,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    inspect,
    literal_column,
)
from sqlalchemy.schema import CreateTable

from annals.commands.store.tables import TEXT
from annals.domain.filters.comparison import NO_REMAINDER
from annals.projections.log.positions import POSITIONS


@dataclass(frozen=True, slots=True, eq=False)
class ReadModelTables:
    """One set of the four tables."""

    metadata: MetaData
    entity: Table
    history: Table
    attribute: Table
    published: Table

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

    def indexes(self) -> Iterator[Index]:
        """The indexes besides the primary keys."""
        for table in self:
            yield from sorted(table.indexes, key=lambda index: str(index.name))

    def __iter__(self) -> Iterator[Table]:
        return iter((self.entity, self.history, self.attribute, self.published))


@lru_cache(maxsize=8)
def tables(suffix: str = "") -> ReadModelTables:
    """The tables of a set; readers use the one without a suffix."""
    metadata = MetaData()
    return ReadModelTables(
        metadata,
        entity=_entity_table(f"entity{suffix}", metadata),
        history=_history_table(f"entity_history{suffix}", metadata),
        attribute=_attribute_table(f"attribute{suffix}", metadata),
        published=_published_table(f"published{suffix}", metadata),
    )


def _entity_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        *_row_columns(),
        PrimaryKeyConstraint("tree_key"),
        # A collection is a range of one type, without the Versions between its Resources.
        Index(f"{name}_by_type", "type", "tree_key"),
    )


def _history_table(name: str, metadata: MetaData) -> Table:
    return Table(
        name,
        metadata,
        *_row_columns(),
        Column("until", BigInteger, nullable=False),
        PrimaryKeyConstraint("tree_key", "since"),
        # For a past collection, without its members' descendants; it skips images of other times without reading them.
        Index(f"{name}_by_type", "type", "tree_key", "since", "until"),
    )


def _attribute_table(name: str, metadata: MetaData) -> Table:
    # Clustered by entity, and each leaf is in exactly one of the two partial indexes: two B-trees on SQLite, not four.
    table = Table(
        name,
        metadata,
        Column("tree_key", TEXT, nullable=False),
        Column("path", TEXT, nullable=False),
        Column("type", TEXT, nullable=False),
        Column("text", TEXT),
        Column("number", Double),
        Column("remainder", TEXT),
        PrimaryKeyConstraint("tree_key", "path"),
        sqlite_with_rowid=False,
    )
    _add_partial_index(f"{name}_by_text", table, ("text",), table.c.text.is_not(None))
    _add_partial_index(f"{name}_by_number", table, ("number", "remainder"), table.c.text.is_(None))
    # For the few numbers that differ from their doubles, for which the rows themselves are read.
    _add_partial_index(
        f"{name}_by_rounded", table, ("number",), table.c.remainder != literal_column(f"'{NO_REMAINDER}'")
    )
    return table


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


def _row_columns() -> list[Column[object]]:
    return [
        Column("tree_key", TEXT, nullable=False),
        Column("xid", Text, nullable=False),
        Column("type", TEXT, nullable=False),
        Column("parent", Text),
        Column("id", Text, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("createdat", Text, nullable=False),
        Column("modifiedat", Text, nullable=False),
        Column("attributes", Text, nullable=False),
        Column("private", Text, nullable=False),
        Column("document", Text),
        Column("since", BigInteger, nullable=False),
        Column("born", BigInteger),
        Column("meta", BigInteger, nullable=False),
    ]


def _add_partial_index(name: str, table: Table, values: tuple[str, ...], where: ColumnElement[bool]) -> None:
    columns = (table.c[key] for key in ("type", "path", *values, "tree_key"))
    Index(name, *columns, sqlite_where=where, postgresql_where=where)
