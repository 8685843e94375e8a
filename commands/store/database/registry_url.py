"""The URL of a registry without a configured one; the store keeps it, so that it stays the one in events (EV-12).

The first process that opens a new store for writing records the URL. It stays the same when the port changes.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from annals.commands.store.database import sql, tables

#: The URL in events and URIs of interactions that were recorded without one, before stores kept a URL.
UNCONFIGURED_URL: Final = "http://127.0.0.1:8080"

_STORED_URL: Final = "SELECT value FROM store WHERE key = 'address'"
_HAS_UNNAMED_INTERACTION: Final = "SELECT 1 FROM interaction WHERE registry_url = '' LIMIT 1"


def load_url(connection: Connection) -> str | None:
    """The stored URL; None when the store has none yet."""
    stored_url: str | None = sql.scalar(connection, _STORED_URL)
    return stored_url


def ensure_url(connection: Connection, address: str) -> str:
    """The URL that the store keeps: the stored one, or the default if it has interactions without a URL, or `address`.

    connection: in a write transaction.
    """
    stored_url = load_url(connection)
    if stored_url is not None:
        return stored_url
    has_unnamed_interactions = sql.scalar(connection, _HAS_UNNAMED_INTERACTION) is not None
    sql.insert(
        connection,
        tables.store,
        [("address", UNCONFIGURED_URL if has_unnamed_interactions else address)],
        "ON CONFLICT DO NOTHING",
    )
    return load_url(connection) or address
