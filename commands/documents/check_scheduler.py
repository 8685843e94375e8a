"""Runs the document checks that a command needs while other commands are written; then requeues the command."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Final

from annals.commands.documents.document_checker import DocumentChecker
from annals.commands.documents.resource_queues import ResourceQueues
from annals.commands.pending_command import PendingCommand
from annals.commands.store.compression.document_compression import decompress_document
from annals.commands.store.database import sql
from annals.commands.store.log import Store
from annals.domain.decisions.checks.document_checks import CheckResults, ChecksRequired
from annals.domain.decisions.checks.expected_checks import expected_checks
from annals.domain.decisions.phases import ReportPhase

#: The maximum number of decisions for a command. It is decided again when its checks are done; the registry may have
#: changed by then.
MAX_ATTEMPTS: Final = 20
#: After this number of unsuccessful decisions, a command waits in a queue with similar commands.
ATTEMPTS_BEFORE_QUEUE: Final = 2
#: The number of commands whose checks run at the same time. Most of these threads wait for a process.
MAX_THREADS: Final = 16


class CheckScheduler:
    """Runs the document checks that commands need.

    requeue: receives a command that can be decided now. on_failure: receives one whose checks failed, with the reason.
    """

    def __init__(
        self,
        store: Store,
        checker: DocumentChecker,
        requeue: Callable[[PendingCommand], None],
        on_failure: Callable[[PendingCommand, Exception], None],
    ) -> None:
        self._store = store
        self._checker = checker
        self._requeue = requeue
        self._on_failure = on_failure
        self._lock = Lock()
        self._queues = ResourceQueues(self._release)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="annals-command-checks")
        #: How many commands wait for check results.
        self.waiting_count = 0

    def prepare(self, pending: PendingCommand) -> PendingCommand | None:
        """The command with the check results that it probably needs; None when it has to wait for them or in a queue.

        A waiting command goes to `requeue` when its results are there, and when it is the first of its queue.
        """
        if not pending.attempts and self._queues.enqueue_new(pending):
            self._add_to_count(1)
            return None
        model = self._store.last_model
        if pending.check_results is not None or model is None:
            return pending
        document_checks, documents = expected_checks(pending.command, model)
        results = self._checker.quick_results(document_checks, documents)
        prepared = replace(pending, check_results=results)
        if len(results) == len(document_checks):
            return prepared
        self._schedule(prepared, ChecksRequired(document_checks - results.keys(), documents))
        return None

    def retry(self, pending: PendingCommand, required: ChecksRequired) -> bool:
        """Whether an undecided command is scheduled for more checks; False when it has used all its attempts."""
        if pending.attempts >= MAX_ATTEMPTS:
            return False
        retry = replace(pending, check_results=pending.check_results or {}, attempts=pending.attempts + 1)
        if retry.attempts < ATTEMPTS_BEFORE_QUEUE or self._queues.enqueue(retry):
            self._schedule(retry, required)
        else:
            self._add_to_count(1)
        return True

    def close(self) -> None:
        """Ends the threads; no command waits any more."""
        self._threads.shutdown()

    def _schedule(self, pending: PendingCommand, required: ChecksRequired) -> None:
        self._add_to_count(1)
        self._threads.submit(self._run_checks, pending, required)

    def _release(self, pending: PendingCommand) -> None:
        """Gives back a command that waited in a queue; the command before it may have changed what it depends on."""
        self._threads.submit(self._run_checks, pending, None)

    def _add_to_count(self, difference: int) -> None:
        with self._lock:
            self.waiting_count += difference

    def _run_checks(self, pending: PendingCommand, required: ChecksRequired | None) -> None:
        """Gives a command back with its check results; rebuilds it if an earlier decision modified it."""
        try:
            wanted = None if pending.future.cancelled() else required
            results = self._check_results(wanted, pending.report_phase) if wanted else {}
            command = pending.rebuild_command() if pending.attempts and pending.rebuild_command else pending.command
        except Exception as error:
            self._on_failure(pending, error)
        else:
            self._requeue(replace(pending, command=command, check_results={**(pending.check_results or {}), **results}))
        finally:
            self._add_to_count(-1)

    def _check_results(self, required: ChecksRequired, report_phase: ReportPhase | None) -> CheckResults:
        def content(sha256: str) -> bytes:
            document = required.documents.get(sha256)
            return document if document is not None else self._load_document(sha256)

        return self._checker.check(required.checks, content, report_phase)

    def _load_document(self, sha256: str) -> bytes:
        with self._store.engine.begin() as connection:
            stored = sql.scalar(connection, "SELECT bytes FROM document WHERE sha256 = ?", (sha256,))
            return decompress_document(sha256, stored)
