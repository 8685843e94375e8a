"""Migrates stores of older programs to the schema of this one."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from annals.commands.store import sql, tables

#: The statement that migrates each schema to the next; each is quick, whatever the size of the store.
_MIGRATIONS: Final = {
    "2": "ALTER TABLE interaction ADD COLUMN salt TEXT NOT NULL DEFAULT ''",
    "3": "SELECT 1",  # states may be compressed, which older programs cannot read
}


def upgrade(connection: Connection) -> str:
    """Migrates a store; returns its schema, which is not this program's when no migration leads to it."""
    schema: str = sql.scalar(connection, "SELECT value FROM store WHERE key = 'schema'")
    while schema != tables.SCHEMA and schema in _MIGRATIONS:
        sql.run(connection, _MIGRATIONS[schema])
        schema = str(int(schema) + 1)
        sql.run(connection, "UPDATE store SET value = ? WHERE key = 'schema'", (schema,))
    return schema
