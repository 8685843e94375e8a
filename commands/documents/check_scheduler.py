"""What a command has to know of documents is found out while others write; then it takes its turn again."""

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

#: How often a command is decided at most: each time its questions are answered, unless what it asks about has changed.
MAX_ATTEMPTS: Final = 20
#: A command that was decided so often in vain stands in line with others like it.
ATTEMPTS_BEFORE_QUEUE: Final = 2
#: How many commands' questions are found out at a time. Most of them wait for a process.
MAX_THREADS: Final = 16


class CheckScheduler:
    """Finds out what commands ask about documents.

    back: takes a command that can be decided now. failed: takes one whose questions nobody can answer, with the reason.
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
        self._lines = ResourceQueues(self._release)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="annals-inquiry")
        #: How many commands wait for answers.
        self.away = 0

    def foresee(self, asked: PendingCommand) -> PendingCommand | None:
        """The command with the answers that it will most likely need; None when it has to wait for them.

        Then it comes back by itself.
        """
        model = self._store.model_at_hand
        if asked.verdicts is not None or model is None or not isinstance(asked.command, WriteTree):
            return asked
        questions, documents = expected_checks(asked.command, model)
        known = self._checker.at_hand(questions, documents)
        ready = replace(asked, verdicts=known)
        if len(known) == len(questions):
            return ready
        self._send(ready, ChecksRequired(questions - known.keys(), documents))
        return None

    def takes(self, asked: PendingCommand, unanswered: ChecksRequired) -> bool:
        """Whether a command that could not be decided comes back with answers; False when it has had its turns."""
        if asked.turns >= MAX_ATTEMPTS:
            return False
        again = replace(asked, verdicts=asked.verdicts or {}, turns=asked.turns + 1)
        if again.turns < ATTEMPTS_BEFORE_QUEUE or self._lines.admits(again):
            self._send(again, unanswered)
        else:
            self._count(1)
        return True

    def close(self) -> None:
        """Ends the threads; nobody waits any more."""
        self._threads.shutdown()

    def _send(self, asked: PendingCommand, unanswered: ChecksRequired) -> None:
        self._count(1)
        self._threads.submit(self._find, asked, unanswered)

    def _release(self, asked: PendingCommand) -> None:
        """Gives a command back that stood in line: what it asked about has changed."""
        self._threads.submit(self._find, asked, None)

    def _count(self, more: int) -> None:
        with self._lock:
            self.away += more

    def _find(self, asked: PendingCommand, unanswered: ChecksRequired | None) -> None:
        """Gives a command back with the answers, made anew if it was taken apart."""
        try:
            verdicts = self._answers(unanswered) if unanswered and not asked.future.cancelled() else {}
            command = asked.again() if asked.turns and asked.again else asked.command
        except Exception as error:
            self._failed(asked, error)
        else:
            self._back(replace(asked, command=command, verdicts={**(asked.verdicts or {}), **verdicts}))
        finally:
            self._count(-1)

    def _answers(self, unanswered: ChecksRequired) -> CheckResults:
        def content(sha256: str) -> bytes:
            known = unanswered.documents.get(sha256)
            return known if known is not None else self._stored(sha256)

        return self._checker.answers(unanswered.questions, content)

    def _stored(self, sha256: str) -> bytes:
        with self._store.engine.begin() as connection:
            return blob(sql.value(connection, "SELECT bytes FROM document WHERE sha256 = ?", (sha256,)))
