"""A command that waits to be decided, with what its caller wants to know of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from commands.store.log import Recorded, WriteTransaction
from domain.access.roles import ANONYMOUS, Caller, Role
from domain.decisions.commands import Command
from domain.decisions.document_checks import CheckResults

#: Builds the response to the caller, inside the savepoint: when it fails, the command is undone (ENT-4).
BuildAnswer = Callable[[WriteTransaction, Recorded], Any]
#: Refuses a command that its caller wants carried out in some state of the registry only, by raising.
Precondition = Callable[[WriteTransaction], None]
#: Makes a command anew.
RebuildCommand = Callable[[], Command]


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command, who asks and on which condition, and where the outcome goes.

    caller: a mere name is a writer's. dryrun: the outcome is wanted, and nothing of it is to stay (FLAG-83).
    again: makes the command anew, for when it has to be decided again: deciding takes trees apart. verdicts: answers
    to its questions about documents; None: not looked at yet. turns: how often it was decided.
    """

    command: Command
    caller: Caller | str = ANONYMOUS
    answer: BuildAnswer | None = None
    condition: Precondition | None = None
    dryrun: bool = False
    again: RebuildCommand | None = None
    verdicts: CheckResults | None = None
    turns: int = 0
    future: Future[Recorded] = field(default_factory=Future)

    @property
    def who(self) -> Caller:
        """The caller with roles."""
        return Caller(self.caller, Role.WRITER) if isinstance(self.caller, str) else self.caller
