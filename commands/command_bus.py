"""Turns commands into recorded events; commands that wait at the same time share one transaction."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from threading import Condition, Thread
from time import perf_counter
from typing import Final, Protocol

from annals.commands.append_foreign import append_foreign
from annals.commands.documents.check_scheduler import CheckScheduler
from annals.commands.documents.document_checker import DocumentChecker
from annals.commands.pending_command import BuildAnswer, PendingCommand, Precondition, RebuildCommand
from annals.commands.store.log import Store
from annals.commands.store.sql_world import SqlWorld
from annals.commands.store.write_transaction import InlineProjection, Recorded, WriteTransaction
from annals.domain.access.roles import ANONYMOUS, Caller, Role
from annals.domain.confluent.checks import content_keys
from annals.domain.decisions.checks.document_checks import CheckResults, ChecksRequired
from annals.domain.decisions.commands import Command, Follow, Restore, SubmittedCommand, WriteTree
from annals.domain.decisions.expected_reads import (
    imported_ids,
    imported_subjects,
    registered_subjects,
    target_xids,
    version_xids,
)
from annals.domain.decisions.permissions import permitted_role
from annals.domain.decisions.phases import ReportPhase
from annals.domain.decisions.world import Context, Decision, World
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import ServerBusy
from annals.domain.registry.entities import xref_target

Decide = Callable[[Command, World, Context], Decision]
CommandOutcome = Recorded | Exception

#: The maximum number of commands in one transaction, so that the first of them does not wait too long.
MAX_BATCH: Final = 256
#: The seconds without a command after which projections do what they have left to do later.
IDLE_SECONDS: Final = 0.1
#: The maximum number of waiting commands; a longer queue would only delay all of them.
MAX_WAITING: Final = 10_000
_LOG: Final = logging.getLogger("annals.store")


class CommitListener(Protocol):
    """A listener that is notified of each transaction."""

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Called when a transaction ends; `seconds` is its duration, including the wait for the lock."""


class _BatchFailed(Exception):
    """Commands that were carried out together could not be written, and nothing of them was recorded."""


def handle(
    batch: Sequence[PendingCommand], store: Store, inline: Sequence[InlineProjection], decide: Decide | None = None
) -> list[CommandOutcome]:
    """Carries out commands; returns one outcome for each, in order. Everything that was recorded is durable.

    Raises: the database's error when the commit fails; then nothing was recorded, except with CommitUnconfirmed.
    """
    decide = decide or _default_decide()
    if len(batch) > 1:
        try:
            return _handle_together(batch, store, inline, decide)
        except _BatchFailed as failure:  # one of them is the cause, and the others must not fail with it
            _LOG.debug(
                "%s commands could not be written together; each is carried out again alone",
                len(batch),
                exc_info=failure.__cause__,
            )
            batch = [pending.rebuilt() for pending in batch]
    return [_handle_one(pending, store, inline, decide) for pending in batch]


def _handle_together(
    batch: Sequence[PendingCommand], store: Store, inline: Sequence[InlineProjection], decide: Decide
) -> list[CommandOutcome]:
    """The outcomes of commands that share a transaction. Raises: _BatchFailed; the database's error, as `handle`."""
    with store.writing(inline, limits_wait=True) as transaction:
        try:
            _prefetch(transaction.world, [pending.command for pending in batch])
            if keys := {key for pending in batch for key in content_keys(pending.check_results or {})}:
                transaction.world.schema_ids.ids_of_keys(keys)
            outcomes = [
                transaction.attempt(partial(record, transaction, pending, decide), dryrun=pending.dryrun)
                for pending in batch
            ]
            transaction.flush()
        except Exception as error:
            raise _BatchFailed from error
    return outcomes


def _prefetch(world: SqlWorld, commands: Sequence[SubmittedCommand]) -> None:
    """Reads in a few queries most of what the decisions need."""
    world.prefetch([xid for command in commands for xid in target_xids(command)])
    world.prefetch_schemas(registered_subjects(commands), imported_subjects(commands), imported_ids(commands))
    world.prefetch([xid for command in commands for xid in version_xids(command, world)])


def _handle_one(
    pending: PendingCommand, store: Store, inline: Sequence[InlineProjection], decide: Decide
) -> CommandOutcome:
    """The outcome of a command that is alone in its transaction; a failed commit is its outcome too."""
    try:
        with store.writing(inline, limits_wait=True) as transaction:
            if pending.dryrun:
                return transaction.attempt(partial(record, transaction, pending, decide), dryrun=True)
            return record(transaction, pending, decide)
    except Exception as error:
        return error


def record(transaction: WriteTransaction, pending: PendingCommand, decide: Decide) -> Recorded:
    """Decides one command, appends its events, and builds its answer; returns the result.

    Raises: Forbidden; what the precondition or the decision raises.
    """
    role = _require_role(pending.caller_with_role, pending.command)
    if pending.condition:
        pending.condition(transaction)
    recorded = _record_events(transaction, pending, role, decide)
    return replace(recorded, answer=pending.build_answer(transaction, recorded)) if pending.build_answer else recorded


def _record_events(transaction: WriteTransaction, pending: PendingCommand, role: Role, decide: Decide) -> Recorded:
    def decide_and_append(command: Command) -> Recorded:
        caller = pending.caller_with_role
        context = transaction.context(caller, role, dryrun=pending.dryrun, report_phase=pending.report_phase)
        transaction.world.known_results = pending.check_results or {}
        decision = decide(command, transaction.world, context)
        if isinstance(command, Restore):
            _check_restored_xrefs(caller, decision)
        return transaction.append(decision, context, command)

    if isinstance(pending.command, Follow):
        return append_foreign(transaction, pending.command, decide_and_append)
    return decide_and_append(pending.command)


class CommandBus:
    """The only way to write to a store's log: a thread takes the waiting commands and commits them together."""

    def __init__(
        self,
        store: Store,
        inline: Sequence[InlineProjection],
        decide: Decide | None = None,
        observer: CommitListener | None = None,
        max_waiting: int = MAX_WAITING,
        checker: DocumentChecker | None = None,
    ) -> None:
        """checker: runs the document checks that decisions require."""
        self._store = store
        self._max_waiting = max_waiting
        self._observer = observer
        self._inline = inline
        self._decide = decide or _default_decide()
        self._queue: SimpleQueue[PendingCommand | None] = SimpleQueue()
        self._gate = Condition()
        self._open_count = 0  # commands whose outcome was not delivered yet
        self._is_closed = self._is_behind = self._has_failed_to_catch_up = False
        self._check_scheduler = CheckScheduler(store, checker or DocumentChecker(), self._queue.put, self._complete)
        self._thread = Thread(target=self._run, name="annals-writer", daemon=True)
        self._thread.start()

    def submit(
        self,
        command: SubmittedCommand,
        caller: Caller | str = ANONYMOUS,
        build_answer: BuildAnswer | None = None,
        condition: Precondition | None = None,
        *,
        dryrun: bool = False,
        rebuild: RebuildCommand | None = None,
        report_phase: ReportPhase | None = None,
        check_results: CheckResults | None = None,
    ) -> Future[Recorded]:
        """A future with the command's result, set once it is durable; the future raises what refused the command.

        dryrun: returns the result that the command would have, with a position and no correlation id; then undoes it.
        rebuild: builds an equal command; without it the bus keeps a copy, in case the command has to be decided twice.
        report_phase: receives how far the command is, in other threads. check_results: of document checks that the
        decision will need, if the caller has them; it asks for others itself.
        Raises: RuntimeError after `close`; ServerBusy when too many commands are waiting.
        """
        future: Future[Recorded] = Future()
        rebuild = rebuild or _copy_for_rebuild(command)
        self.enqueue(
            PendingCommand(
                command,
                caller,
                build_answer,
                condition,
                dryrun,
                rebuild,
                check_results,
                report_phase=report_phase,
                future=future,
            )
        )
        return future

    def enqueue(self, pending: PendingCommand) -> None:
        """Sets the future of a command once it is durable, or when it is refused. Raises: as `submit`."""
        with self._gate:
            if self._is_closed:
                raise RuntimeError("the store is being closed")
            if self._queue.qsize() + self._check_scheduler.waiting_count >= self._max_waiting:
                raise ServerBusy()
            self._open_count += 1
            self._queue.put(pending)

    def close(self) -> None:
        """Accepts no more commands and returns when the waiting ones are done."""
        with self._gate:
            first, self._is_closed = not self._is_closed, True
            self._gate.wait_for(lambda: not self._open_count)
            if first:
                self._queue.put(None)
        self._thread.join()
        self._check_scheduler.close()

    def _run(self) -> None:
        while self._carry_out_batch():
            pass
        if self._is_behind:
            self._catch_up()

    def _carry_out_batch(self) -> bool:
        """Whether there was a batch of commands, which now have their outcomes or wait for checks.

        Everything of a batch is freed before the wait for the next one, not when that has arrived.
        """
        batch = self._next_batch()
        decidable = [decidable for pending in batch if (decidable := self._with_expected_checks(pending))]
        started = [pending for pending in decidable if self._claim(pending)]
        outcomes = self._handle_observed(started) if started else ()
        done_count = 0
        for pending, outcome in zip(started, outcomes, strict=True):
            if not isinstance(outcome, ChecksRequired):
                _set_outcome(pending, outcome)
                done_count += 1
            elif not self._check_scheduler.retry(pending, outcome):
                self._complete(pending, ServerBusy())
        self._count_done(done_count)
        return bool(batch)

    def _with_expected_checks(self, pending: PendingCommand) -> PendingCommand | None:
        """The command if it can be decided now or was cancelled; None if it waits for checks."""
        try:
            return pending if pending.future.cancelled() else self._check_scheduler.prepare(pending)
        except Exception as error:  # all commands share this thread
            self._complete(pending, error)
            return None

    def _claim(self, pending: PendingCommand) -> bool:
        """Whether a command is still wanted. Until now it could be cancelled, also while its checks were running."""
        if pending.future.running() or pending.future.set_running_or_notify_cancel():
            return True
        self._count_done()
        return False

    def _complete(self, pending: PendingCommand, outcome: CommandOutcome) -> None:
        # `close` waits until every command has its outcome.
        if self._claim(pending):
            _set_outcome(pending, outcome)
            self._count_done()

    def _count_done(self, count: int = 1) -> None:
        with self._gate:
            self._open_count -= count
            self._gate.notify_all()

    def _handle_observed(self, batch: Sequence[PendingCommand]) -> Sequence[CommandOutcome]:
        started_at = perf_counter()
        with _gc_paused():
            outcomes, self._is_behind = self._handle_batch(batch), True
        if self._observer and batch:
            refused = sum(isinstance(outcome, Exception) for outcome in outcomes)
            self._notify(self._observer, len(outcomes), refused, perf_counter() - started_at)
        return outcomes

    @staticmethod
    def _notify(observer: CommitListener, commands: int, refused: int, seconds: float) -> None:
        try:
            observer.committed(commands, refused, seconds)
        except Exception:  # the commands have to get their outcomes
            _LOG.exception("a listener of commits failed")

    def _handle_batch(self, batch: Sequence[PendingCommand]) -> Sequence[CommandOutcome]:
        try:
            return handle(batch, self._store, self._inline, self._decide)
        except Exception as error:
            return [error] * len(batch)

    def _next_batch(self) -> list[PendingCommand]:
        """The commands that wait now, at least one; empty when the bus is closed and nothing waits."""
        first = self._first_command()
        batch = [first] if first else []
        while batch and len(batch) < MAX_BATCH:
            try:
                pending = self._queue.get_nowait()
            except Empty:
                break
            if pending is None:
                self._queue.put(None)
                break
            batch.append(pending)
        return batch

    def _first_command(self) -> PendingCommand | None:
        """The next command, once there is one; None when the bus is closed."""
        if self._is_behind:
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except Empty:
                self._catch_up()
        return self._queue.get()

    def _catch_up(self) -> None:
        """Has projections do what they have left to do later; the next commands cause another attempt if it fails."""
        self._is_behind = False
        try:
            with self._store.writing() as transaction:
                for projection in self._inline:
                    projection.catch_up(transaction.connection)
        except Exception as error:
            if not self._store.damage.note(error) and not self._has_failed_to_catch_up:
                _LOG.warning("the index over attributes stays behind until the next write", exc_info=error)
            self._has_failed_to_catch_up = True
        else:
            self._has_failed_to_catch_up = False


def _set_outcome(pending: PendingCommand, outcome: CommandOutcome) -> None:
    if isinstance(outcome, Exception):
        pending.future.set_exception(outcome)
    else:
        pending.future.set_result(outcome)


def _require_role(caller: Caller, command: SubmittedCommand) -> Role:
    """The caller's role at the command's target. Raises: Forbidden when the caller may not send the command."""
    role = permitted_role(caller, command)
    if role is None:
        raise Forbidden(caller=caller.name)
    return role


def _check_restored_xrefs(caller: Caller, decision: Decision) -> None:
    """Raises: Forbidden when restored Resources have xrefs to entities that the caller may not read."""
    if caller.role is None and not all(map(caller.can_read, filter(None, map(xref_target, decision.events)))):
        raise Forbidden(caller=caller.name)


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pauses garbage collection: an import creates objects that all stay, so each collection would be wasted."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _copy_for_rebuild(command: SubmittedCommand) -> RebuildCommand:
    """A function that rebuilds a command from a copy; only WriteTree needs one, because deciding modifies its tree."""
    if not isinstance(command, WriteTree):
        return lambda: command
    copy = deepcopy(command)
    return lambda: deepcopy(copy)


def _default_decide() -> Decide:
    from annals.domain.decisions.decide import decide

    return decide
