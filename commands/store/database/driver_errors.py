"""The error classes of the database drivers. Only a PostgreSQL store imports psycopg, which takes long."""

from __future__ import annotations

import sqlite3
import sys


def driver_errors(name: str = "Error") -> tuple[type[Exception], ...]:
    """Both drivers' classes with a name of Python's database API. `except` calls this only after an error."""
    return (getattr(sqlite3, name), *postgres_errors(name))


def postgres_errors(*names: str) -> tuple[type[Exception], ...]:
    """The classes of psycopg with these names; none while it is not imported, because then no such error exists."""
    psycopg = sys.modules.get("psycopg")
    return tuple(getattr(psycopg, name) for name in names) if psycopg else ()


def is_lock_timeout(error: object) -> bool:
    """Whether an error of psycopg says that another transaction has held a lock for longer than `lock_timeout`."""
    return getattr(error, "sqlstate", None) == "55P03"
