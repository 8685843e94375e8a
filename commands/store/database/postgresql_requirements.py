"""What a PostgreSQL database needs for a store: UTF-8, and a session for each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg  # takes long, and a SQLite store does not need it


class UnusableDatabase(RuntimeError):
    """A store cannot be in this database, whatever the database contains."""


def require_usable(connection: psycopg.Connection[Any]) -> None:
    """Checks the database of a connection that is not in a transaction. Raises: UnusableDatabase."""
    _require_utf8(connection)
    _require_own_sessions(connection)


def _require_utf8(connection: psycopg.Connection[Any]) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise UnusableDatabase(
            f"the database has the encoding {encoding}, and a store needs UTF8; create a database with ENCODING 'UTF8'"
            " for it."
        )


def _require_own_sessions(connection: psycopg.Connection[Any]) -> None:
    """Checks that no connection pooler gives the session of a connection to others between its transactions.

    They would use each other's prepared statements, settings and locks. A pooler announces numbers of its own for
    sessions, so only behind one a second connection is needed.
    """
    session = _session_number(connection)
    if session == connection.info.backend_pid:
        return
    with type(connection).connect(connection.info.dsn, password=connection.info.password) as other:
        if _session_number(other) == session:
            raise UnusableDatabase(
                "a connection pooler gives several connections one session of the database, and a store needs a session"
                " for each; set the pooler to session mode, or connect to the database itself."
            )


def _session_number(connection: psycopg.Connection[Any]) -> int:
    [(number,)] = connection.execute("SELECT pg_backend_pid()")
    connection.commit()
    return int(number)
