"""Runs the document checks that a command needs while other commands are written; then requeues the command."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Final

from commands.documents.document_checker import DocumentChecker
from commands.documents.resource_queues import ResourceQueues
from commands.pending_command import PendingCommand
from commands.store import sql
from commands.store.log import Store
from commands.store.mapper import blob
from domain.decisions.commands import WriteTree
from domain.decisions.document_checks import CheckResults, ChecksRequired
from domain.decisions.expected_checks import expected_checks

#: The maximum number of decisions for a command. It is decided again when its checks are done; what they check may have
#: changed by then.
MAX_ATTEMPTS: Final = 20
#: After this number of unsuccessful decisions, a command waits in a queue with similar commands.
ATTEMPTS_BEFORE_QUEUE: Final = 2
#: The number of commands whose checks run at the same time. Most of these threads wait for a process.
MAX_THREADS: Final = 16


class CheckScheduler:
    """Runs the document checks that commands need.

    back: receives a command that can be decided now. failed: receives one whose checks failed, with the reason.
    """

    def __init__(
        self,
        store: Store,
        checker: DocumentChecker,
        back: Callable[[PendingCommand], None],
        failed: Callable[[PendingCommand, Exception], None],
    ) -> None:
        self._store = store
        self._checker = checker
        self._back = back
        self._failed = failed
        self._lock = Lock()
        self._queues = ResourceQueues(self._release)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="annals-inquiry")
        #: How many commands wait for check results.
        self.waiting_count = 0

    def prepare(self, asked: PendingCommand) -> PendingCommand | None:
        """The command with the check results that it probably needs; None when it has to wait for them.

        A waiting command goes to `back` when its results are there.
        """
        model = self._store.last_model
        if asked.check_results is not None or model is None or not isinstance(asked.command, WriteTree):
            return asked
        questions, documents = expected_checks(asked.command, model)
        known = self._checker.quick_results(questions, documents)
        ready = replace(asked, check_results=known)
        if len(known) == len(questions):
            return ready
        self._send(ready, ChecksRequired(questions - known.keys(), documents))
        return None

    def retry(self, asked: PendingCommand, unanswered: ChecksRequired) -> bool:
        """Whether an undecided command is scheduled for more checks; False when it has used all its attempts."""
        if asked.attempts >= MAX_ATTEMPTS:
            return False
        again = replace(asked, check_results=asked.check_results or {}, attempts=asked.attempts + 1)
        if again.attempts < ATTEMPTS_BEFORE_QUEUE or self._queues.enqueue(again):
            self._send(again, unanswered)
        else:
            self._count(1)
        return True

    def close(self) -> None:
        """Ends the threads; no command waits any more."""
        self._threads.shutdown()

    def _send(self, asked: PendingCommand, unanswered: ChecksRequired) -> None:
        self._count(1)
        self._threads.submit(self._find, asked, unanswered)

    def _release(self, asked: PendingCommand) -> None:
        """Gives back a command that waited in a queue, because what it asked about has changed."""
        self._threads.submit(self._find, asked, None)

    def _count(self, more: int) -> None:
        with self._lock:
            self.waiting_count += more

    def _find(self, asked: PendingCommand, unanswered: ChecksRequired | None) -> None:
        """Gives a command back with its check results; rebuilds it if an earlier decision modified it."""
        try:
            verdicts = self._answers(unanswered) if unanswered and not asked.future.cancelled() else {}
            command = asked.rebuild_command() if asked.attempts and asked.rebuild_command else asked.command
        except Exception as error:
            self._failed(asked, error)
        else:
            self._back(replace(asked, command=command, check_results={**(asked.check_results or {}), **verdicts}))
        finally:
            self._count(-1)

    def _answers(self, unanswered: ChecksRequired) -> CheckResults:
        def content(sha256: str) -> bytes:
            known = unanswered.documents.get(sha256)
            return known if known is not None else self._stored(sha256)

        return self._checker.check(unanswered.checks, content)

    def _stored(self, sha256: str) -> bytes:
        with self._store.engine.begin() as connection:
            return blob(sql.value(connection, "SELECT bytes FROM document WHERE sha256 = ?", (sha256,)))
