"""The outcome of a verb: an exit code for scripts and, after an error, one line on stderr."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

import psycopg
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError, NoSuchModuleError

from annals.commands.store.damage import describe_damage
from annals.commands.store.mapper import UnreadableEvent
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import InvalidJson


class ExitCode(IntEnum):
    """Exit codes, part of the command line's contract."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    STORE = 3


EXIT_CODES_HELP: Final = (
    "Exit codes: 0 done, 1 the input was refused, 2 wrong usage or settings, "
    "3 the store cannot be reached or is damaged."
)


class InvalidInput(Exception):
    """The verb does not accept the input; the message has the reason."""


class UsageError(Exception):
    """The command line or the settings are invalid; the message says what to do."""


class StoreError(Exception):
    """The store is missing, unreachable or damaged; the message says which and what to do."""


def problem_line(problem: Problem) -> str:
    """What was refused and by which rule: `/dirs/d1: Attribute ... (invalid_attribute)`."""
    subject = problem.subject or ""
    subject_prefix = f"{subject}: " if subject.startswith("/") and subject not in problem.text() else ""
    detail = f" {problem.detail}" if problem.detail else ""
    return f"{subject_prefix}{problem.text()}{detail} ({problem.name})"


def _settings_line(error: ValidationError) -> str:
    from annals.api.cli.setup.settings_classes import variable_of_error

    errors = error.errors(include_url=False, include_input=False)
    messages = (
        (variable_of_error(error.title, *map(str, entry["loc"])), entry["msg"].removeprefix("Value error, "))
        for entry in errors
    )
    return "; ".join(f"{name}: {message}" for name, message in messages)


def _store_line(error: Exception) -> str:
    first_line = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
    if damage := describe_damage(error):
        return f"the store cannot be used: {damage} ({first_line}). annals log verify says where; restore a backup."
    return f"the store does not answer: {first_line}. Check the database, and ANNALS_DATABASE or --database."


_ERRORS: Final[tuple[tuple[type[Exception], ExitCode, Callable[[Any], str]], ...]] = (
    (Problem, ExitCode.REFUSED, problem_line),
    (UnreadableEvent, ExitCode.STORE, lambda error: f"the store is damaged: {error}. annals log verify says where."),
    (InvalidJson, ExitCode.REFUSED, str),
    (InvalidInput, ExitCode.REFUSED, str),
    (UsageError, ExitCode.USAGE, str),
    (ValidationError, ExitCode.USAGE, _settings_line),
    (NoSuchModuleError, ExitCode.USAGE, str),
    (StoreError, ExitCode.STORE, str),
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
