"""The URL of a registry that is configured none: a fact of its store, so that it stays what events have named (EV-12).

The first process that opens a new store to write records it; whatever port the registry has later, it is kept.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from commands.store import sql, tables

#: What events and URIs name whose interaction was recorded without a URL, as stores did before they kept one.
UNCONFIGURED_URL: Final = "http://127.0.0.1:8080"

_KEPT: Final = "SELECT value FROM store WHERE key = 'address'"
_UNNAMED: Final = "SELECT 1 FROM interaction WHERE registry_url = '' LIMIT 1"


def load_url(connection: Connection) -> str | None:
    """The URL that a store keeps; None where it keeps none yet."""
    found: str | None = sql.value(connection, _KEPT)
    return found


def ensure_url(connection: Connection, address: str) -> str:
    """The URL that a store keeps from now on: the one it has, that of its events, or else this one.

    connection: in a transaction that writes.
    """
    found = load_url(connection)
    if found is not None:
        return found
    unnamed = sql.value(connection, _UNNAMED) is not None
    sql.insert(
        connection, tables.store, [("address", UNCONFIGURED_URL if unnamed else address)], "ON CONFLICT DO NOTHING"
    )
    return load_url(connection) or address
