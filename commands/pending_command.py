"""A command that waits to be decided, with the callbacks and options of its caller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.access.roles import ANONYMOUS, Caller, Role
from annals.domain.decisions.checks.document_checks import CheckResults
from annals.domain.decisions.commands import SubmittedCommand
from annals.domain.decisions.phases import ReportPhase

#: Builds the response to the caller, inside the transaction: when it fails, the command is undone (ENT-4).
BuildAnswer = Callable[[WriteTransaction, Recorded], Any]
#: Raises an error when the registry is not in the state that the caller requires for the command.
Precondition = Callable[[WriteTransaction], None]
#: Builds the command again.
RebuildCommand = Callable[[], SubmittedCommand]


class CommandFuture(Protocol):
    """Receives the outcome of a command, from the thread that carries it out; a `Future` is one."""

    def cancelled(self) -> bool: ...
    def running(self) -> bool: ...
    def set_running_or_notify_cancel(self) -> bool: ...
    def set_result(self, result: Recorded, /) -> None: ...
    def set_exception(self, exception: Exception, /) -> None: ...
    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command, its caller and precondition, and the future for its outcome.

    caller: a plain name has the writer role. dryrun: return the outcome and undo the command (FLAG-83).
    rebuild_command: builds the command again for another decision, because deciding modifies its trees. check_results:
    results of its document checks; None before the first lookup. attempts: how often it was decided.
    report_phase: receives how far the command is, in other threads.
    """

    command: SubmittedCommand
    caller: Caller | str = ANONYMOUS
    build_answer: BuildAnswer | None = None
    condition: Precondition | None = None
    dryrun: bool = False
    rebuild_command: RebuildCommand | None = None
    check_results: CheckResults | None = None
    attempts: int = 0
    report_phase: ReportPhase | None = None
    future: CommandFuture = field(default_factory=Future[Recorded])

    @property
    def caller_with_role(self) -> Caller:
        """The caller with its roles."""
        return Caller(self.caller, Role.WRITER) if isinstance(self.caller, str) else self.caller

    def rebuilt(self) -> PendingCommand:
        """The same for another decision: deciding may have modified the command."""
        return replace(self, command=self.rebuild_command()) if self.rebuild_command else self
