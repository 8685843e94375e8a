"""The tables of the search index, which nothing but the index reads.

It is built like that of Lucene, or an LSM tree. Each entity that a search can find has a number, as documents have
there, and a new one after each change. A segment has the words of the entities within a range of numbers, in blocks by
word, and their keys and texts, in blocks by number; segments are merged as they become many. Numbers of entities that
were changed or deleted since stay in a segment until it is merged, and are in `search_gone` meanwhile.
"""

from __future__ import annotations

from secrets import randbits
from typing import Final

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, PrimaryKeyConstraint, Table, inspect
from sqlalchemy.engine import Connection

from annals.commands.store.damage import UnreadableRow
from annals.commands.store.database.tables import TEXT
from annals.projections.database import drivers
from annals.projections.database.drivers import Database
from annals.projections.log import positions

METADATA: Final = MetaData()
#: The form of the tables and blocks: a program of another form needs a new index.
FORM: Final = 4
_POSITION_NAME: Final = "search"

#: The largest table that is rewritten, which takes about ten seconds a gigabyte.
MAX_PACKED_BYTES: Final = 128 << 20
#: How long new readers wait behind one that is being waited for. Longer than `deadlock_timeout`, after which PostgreSQL
#: cancels its own vacuum of a table.
_PACK_LOCK_TIMEOUT: Final = "1500ms"

# Only a column declared INTEGER is SQLite's own row number, which saves an index.
_NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")

#: One row: the form, and a random number for each index that was begun. What one process has read of an index must not
#: be written to the next one, whose numbers begin at 1 again.
index: Final = Table(
    "search_index",
    METADATA,
    Column("form", BigInteger, primary_key=True, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
)

#: low, high: the range of numbers. size: entities when it was written.
segment: Final = Table(
    "search_segment",
    METADATA,
    Column("low", _NUMBER, primary_key=True, autoincrement=False),
    Column("high", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
)

#: The numbers that are in a segment and have been changed or deleted since, as bitmaps of 65,536 numbers each. part:
#: what these have in common above their last 16 bits. See `gone_numbers.py`.
gone: Final = Table(
    "search_gone",
    METADATA,
    Column("part", _NUMBER, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

#: Words of a segment with the numbers of their entities, see `blocks.py`. segment: its `low`. first: the first word.
block: Final = Table(
    "search_block",
    METADATA,
    Column("segment", BigInteger, nullable=False),
    Column("first", TEXT, nullable=False),
    Column("data", LargeBinary, nullable=False),
    # A table without row numbers would have such blocks on pages of their own.
    PrimaryKeyConstraint("segment", "first"),
)


def _row_table(name: str) -> Table:
    """A table of blocks of rows. first: the first number of those in a block."""
    return Table(
        name,
        METADATA,
        Column("first", _NUMBER, primary_key=True, autoincrement=False),
        Column("data", LargeBinary, nullable=False),
    )


#: The tree keys of entities.
key: Final = _row_table("search_key")
#: What the answers show of entities.
text: Final = _row_table("search_text")


class UnreadableIndex(UnreadableRow):
    """A row of the search index is damaged."""


def create(connection: Connection) -> None:
    """Creates the tables that do not exist, and again those of another program; they are filled later.

    Tables of this form stay as they are, also if they are not filled yet: another process may do that just now.
    """
    db = drivers.database_of(connection)
    positions.POSITIONS.create(connection, checkfirst=True)
    inspector = inspect(connection)
    exist = all(inspector.has_table(table.name) for table in METADATA.sorted_tables)
    if exist and db.one("SELECT 1 FROM search_index WHERE form = ?", (FORM,)):
        return
    METADATA.drop_all(connection)
    connection.exec_driver_sql("DROP TABLE IF EXISTS search_entity")  # of forms before the fourth
    METADATA.create_all(connection)
    clear(db)
    if connection.dialect.name == "postgresql":
        for table in (block, key, text):  # they are compressed already
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ALTER COLUMN data SET STORAGE EXTERNAL")


def clear(db: Database) -> None:
    """Begins another index, without entities and without a position."""
    for table in METADATA.sorted_tables:
        db.run(f"DELETE FROM {table.name}")
    db.run("DELETE FROM projection WHERE name LIKE 'search%'")  # that of earlier forms too
    db.insert(index, [(FORM, randbits(62))])


def generation(db: Database) -> int:
    """The number of the index that the tables have. Raises: UnreadableIndex."""
    row = db.one("SELECT generation FROM search_index")
    if row is None or type(row[0]) is not int:
        raise UnreadableIndex("the search index has no generation")
    return row[0]


def find_position(db: Database) -> int | None:
    """Up to where the index has the log; None before it is complete for the first time. Raises: UnreadableIndex."""
    try:
        return positions.find_position(db, _POSITION_NAME)
    except UnreadableRow as error:
        raise UnreadableIndex(str(error)) from error


def save_position(db: Database, position: int) -> None:
    """Sets up to where the index has the log, in the transaction of what was written."""
    positions.save_position(db, _POSITION_NAME, position)


def pack(db: Database, name: str) -> None:
    """Rewrites a table of PostgreSQL without the space of removed rows; readers of this table wait until it is done.

    For a transaction of its own. A table that others hold, or of more than `MAX_PACKED_BYTES`, stays as it is. Rows
    that were removed since the oldest open writer of the server began, in whatever database, keep their space.
    """
    (size,) = db.one(f"SELECT pg_total_relation_size('{name}')")
    if size <= MAX_PACKED_BYTES:
        db.run(f"SET LOCAL lock_timeout = '{_PACK_LOCK_TIMEOUT}'")
        db.run(f"CLUSTER {name} USING {name}_pkey")
