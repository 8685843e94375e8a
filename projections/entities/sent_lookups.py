"""Look-ups that a PostgreSQL server answers while the thread does other work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import make_url

from annals.domain.values.xid import tree_key
from annals.projections.database.connections import connect_server
from annals.projections.database.drivers import PostgresDatabase
from annals.projections.database.prepared_statements import PreparedStatements
from annals.projections.entities.found_entities import MANY_WITH_DEFINITIONS, MANY_WITH_DOCUMENTS


class SentLookups:
    """A connection for the look-ups of several entities at once, each time in one statement."""

    def __init__(self, url: str, with_documents: bool) -> None:
        """Connects, which may take long. Raises: psycopg.Error."""
        statement = MANY_WITH_DOCUMENTS if with_documents else MANY_WITH_DEFINITIONS
        self._statement = statement.format(PostgresDatabase.list_table)
        self._connection = connect_server(make_url(url))
        self._prepared = PreparedStatements(self._connection)
        self._prepared.prepare(self._statement)  # waits for the server, as connecting does

    def fileno(self) -> int:
        """The socket of the connection, which becomes readable when an answer arrives."""
        return self._connection.fileno()

    def send(self, xids: Iterable[str]) -> None:
        """Sends the look-ups of entities, whose xids have no NUL. Raises: psycopg.Error."""
        self._prepared.send(self._statement, (_array_text({tree_key(xid) for xid in xids}),))

    def receive(self) -> dict[str, Any] | None:
        """The values for `found_entity`, by tree key; None if they have not arrived yet. Raises: psycopg.Error."""
        rows = self._prepared.receive()
        return None if rows is None else {key: values for key, *values in rows}

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _array_text(texts: Iterable[str]) -> str:
    """The texts as an array of PostgreSQL."""
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in escaped) + "}"
