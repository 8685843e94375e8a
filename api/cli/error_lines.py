"""Exit codes and one-line messages of errors.

Only `main` imports this file, and only after an error, because the error classes of all libraries take long to import.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

import psycopg
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError, NoSuchModuleError

from annals.api.cli.outcome import ExitCode, Interrupted, InvalidInput, StoreError, UsageError, problem_line
from annals.api.cli.setup.settings_classes import variable_of_error
from annals.commands.store.damage import describe_damage, remedy
from annals.commands.store.database.migrations import UnusableSchema
from annals.commands.store.database.postgresql_requirements import UnusableDatabase
from annals.commands.store.mapper import UnreadableEvent
from annals.domain.errors.http_errors import ArchiveUnavailable
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import InvalidJson

#: SQLSTATE of a statement that writes, in a database that takes no writes.
_READ_ONLY: Final = "25006"
_READ_ONLY_LINE: Final = (
    "the database is read-only, as a standby is. Name the primary in ANNALS_DATABASE or --database, or all hosts"
    " (host=first,second&port=5432,5433). What only reads the log also works on a standby: annals log, annals segments"
    " write, annals lake and annals spark."
)


def _settings_line(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False)
    messages = (
        (variable_of_error(error.title, *map(str, entry["loc"])), entry["msg"].removeprefix("Value error, "))
        for entry in errors
    )
    return "; ".join(f"{name}: {message}" for name, message in messages)


def _store_line(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if getattr(cause, "sqlstate", None) == _READ_ONLY:
        return _READ_ONLY_LINE
    first_line = str(cause).strip().partition("\n")[0]
    if damage := describe_damage(error):
        return f"the store cannot be used: {damage} ({first_line}). annals log verify says where; {remedy(error)}."
    return f"the store does not answer: {first_line}. Check the database, and ANNALS_DATABASE or --database."


_ERRORS: Final[tuple[tuple[type[Exception], ExitCode, Callable[[Any], str]], ...]] = (
    (ArchiveUnavailable, ExitCode.STORE, problem_line),
    (Problem, ExitCode.REFUSED, problem_line),
    (UnreadableEvent, ExitCode.STORE, lambda error: f"the store is damaged: {error}. annals log verify says where."),
    (InvalidJson, ExitCode.REFUSED, str),
    (InvalidInput, ExitCode.REFUSED, str),
    (Interrupted, ExitCode.INTERRUPTED, str),
    (UsageError, ExitCode.USAGE, str),
    (ValidationError, ExitCode.USAGE, _settings_line),
    (NoSuchModuleError, ExitCode.USAGE, str),
    (StoreError, ExitCode.STORE, str),
    (UnusableDatabase, ExitCode.STORE, str),
    (UnusableSchema, ExitCode.STORE, lambda error: f"{error}."),
    (DBAPIError, ExitCode.STORE, _store_line),
    (sqlite3.Error, ExitCode.STORE, _store_line),
    (psycopg.Error, ExitCode.STORE, _store_line),
)


def exit_outcome(error: Exception) -> tuple[ExitCode, str] | None:
    """The exit code and the line for an error; None for an unexpected error, whose traceback has to be shown."""
    for kind, code, message_of in _ERRORS:
        if isinstance(error, kind):
            return code, message_of(error)
    return None
