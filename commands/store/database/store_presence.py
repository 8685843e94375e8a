"""Whether a database has a store, or tables of another program."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Inspector, NullPool, create_engine, inspect, make_url

from annals.commands.store.database.engine import postgresql_options

#: The columns of the table `store`; other programs have tables of that name, too.
_STORE_COLUMNS: Final = {"key", "value"}
#: Seconds to wait for a program that has locked a SQLite file.
_LOCK_SECONDS: Final = 60.0


class DatabaseContents(NamedTuple):
    """What a database has.

    other_tables: the names of tables and views of other programs, if a SQLite file has no store. PostgreSQL has schemas
    and extensions to keep programs apart, so there it is empty.
    """

    has_store: bool
    other_tables: tuple[str, ...] = ()


def read_contents(url: str) -> DatabaseContents:
    """What the database has, on PostgreSQL in the schemas of the search path.

    It changes nothing, unlike `open_engine`, which gives any SQLite file a write-ahead log. But it creates a missing
    SQLite file. Raises: the errors of the driver, in those of SQLAlchemy.
    """
    parsed = make_url(url)
    is_sqlite = parsed.get_backend_name() == "sqlite"
    engine = create_engine(
        parsed if is_sqlite else parsed.set(drivername="postgresql+psycopg"),
        connect_args={"timeout": _LOCK_SECONDS} if is_sqlite else postgresql_options(parsed),
        poolclass=NullPool,
        hide_parameters=True,
    )
    with engine.connect() as connection:
        found = inspect(connection)
        if not is_sqlite or _has_store(found):
            return DatabaseContents(_has_store(found))
        return DatabaseContents(has_store=False, other_tables=(*found.get_table_names(), *found.get_view_names()))


def _has_store(found: Inspector) -> bool:
    if not found.has_table("store"):
        return False
    return {column["name"] for column in found.get_columns("store")} >= _STORE_COLUMNS
