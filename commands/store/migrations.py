"""Stores that an older program wrote, brought to the schema of this one."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from commands.store import sql, tables

#: What makes a store of one schema one of the next; each step is quick, whatever the size of the store.
_STEPS: Final = {"2": "ALTER TABLE interaction ADD COLUMN salt TEXT NOT NULL DEFAULT ''"}


def upgrade(connection: Connection) -> str:
    """The schema of a store, once the steps that lead to this program's are made; another one where none leads on."""
    found: str = sql.value(connection, "SELECT value FROM store WHERE key = 'schema'")
    while found != tables.SCHEMA and found in _STEPS:
        sql.run(connection, _STEPS[found])
        found = str(int(found) + 1)
        sql.run(connection, "UPDATE store SET value = ? WHERE key = 'schema'", (found,))
    return found
