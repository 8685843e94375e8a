"""The outcome of a verb: an exit code for scripts, and the errors with which a verb ends."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from annals.domain.errors.problems import Problem


class ExitCode(IntEnum):
    """Exit codes, part of the command line's contract."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    STORE = 3
    INTERRUPTED = 130


EXIT_CODES_HELP: Final = (
    "Exit codes: 0 done, 1 the input was refused, 2 wrong usage or settings, "
    "3 the store cannot be reached or is damaged."
)

#: What each exit code means, for the reference.
EXIT_CODE_MEANINGS: Final = {
    ExitCode.DONE: "The verb has done its work.",
    ExitCode.REFUSED: "The input was refused, a comparison found a difference, or a question was answered with no. A "
    "defect of Annals also ends with this code; it is the only error that prints a traceback.",
    ExitCode.USAGE: "The command line or a setting is wrong, whatever the registry has; or the output cannot be "
    "written.",
    ExitCode.STORE: "The store, or another server that the verb needs, cannot be reached or answers with an error; or "
    "the store is damaged.",
    ExitCode.INTERRUPTED: "Ctrl-C ended the verb early, or SIGTERM an export to another schema registry. `serve` and "
    "other verbs that run until Ctrl-C end with 0.",
}


class InvalidInput(Exception):
    """The verb does not accept the input; the message has the reason."""


class UsageError(Exception):
    """The command line or the settings are invalid; the message says what to do."""


class Interrupted(Exception):
    """Ctrl-C ended the verb before its work was done; the message says what has not happened."""


class StoreError(Exception):
    """The store is missing, unreachable or damaged; the message says which and what to do."""


def findings_text(count: int) -> str:
    """`1 finding` or `2 findings`."""
    return f"{count} finding{'' if count == 1 else 's'}"


def sentence(text: str) -> str:
    """A text with a full stop at its end, which texts of another server may have."""
    return f"{text.rstrip('.')}."


def problem_line(problem: Problem) -> str:
    """What was refused and by which rule: `/dirs/d1: Attribute ... (invalid_attribute)`."""
    subject = problem.subject or ""
    subject_prefix = f"{subject}: " if subject.startswith("/") and subject not in problem.text() else ""
    detail = f" {problem.detail}" if problem.detail else ""
    return f"{subject_prefix}{problem.text()}{detail} ({problem.name})"
