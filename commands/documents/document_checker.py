"""Checks documents in separate processes with limits on time and memory, before the write lock is taken.

This module does not read the log: it receives questions and bytes, and returns results. It caches results, because they
never change.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from commands.documents.check_processes import CheckClient, CheckProcessPool, CheckResponse, LoadDocument
from commands.documents.check_server import CheckRequest, documents_of
from domain import formats
from domain.decisions.document_checks import (
    CRASHED,
    OUT_OF_MEMORY,
    TIMED_OUT,
    CheckResult,
    CheckResults,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
    parse_document,
    run_check,
)

__all__ = ["CheckLimits", "DocumentChecker", "LoadDocument"]

#: The maximum number of questions, and of document bytes, in one batch for a process.
BATCH_CHECKS: Final = 128
BATCH_BYTES: Final = 512 << 10
#: The calling thread checks documents of tame formats (see `FormatModule`) up to this size in bytes, if a request has
#: at most this number of unanswered questions.
SMALL_BYTES: Final = 8 << 10
FEW_CHECKS: Final = 4
#: The maximum number of cached results, and of cached document sizes.
CACHE_SIZE: Final = 100_000
#: This number of questions extends the time limit of a request by the time for one document.
CHECKS_PER_TIMEOUT: Final = 100

_UNDONE: Final = {(one,) for one in (TIMED_OUT, OUT_OF_MEMORY, CRASHED)}


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """Limits of checking. memory: of one process, in bytes. seconds: for one document.

    max_losses: how many documents of a request may fail by these limits; after that the rest is not checked.
    """

    workers: int = 2
    seconds: float = 10.0
    memory: int = 2 << 30
    max_losses: int = 6


class DocumentChecker:
    """Answers questions about documents. Thread-safe."""

    def __init__(self, bounds: CheckLimits | None = None) -> None:
        self._bounds = bounds or CheckLimits()
        self._asker = CheckClient()
        self._cache: OrderedDict[DocumentCheck, CheckResult] = OrderedDict()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def cached_results(self, questions: Iterable[DocumentCheck]) -> dict[DocumentCheck, CheckResult]:
        """The cached results."""
        with self._lock:
            found = {question: self._cache[question] for question in questions if question in self._cache}
            for question in found:
                self._cache.move_to_end(question)
        return found

    def quick_results(
        self, questions: Iterable[DocumentCheck], documents: Mapping[str, bytes]
    ) -> dict[DocumentCheck, CheckResult]:
        """The cached results, and results of a few questions that cost less to check here than in a process."""
        asked = list(questions)
        found = self.cached_results(asked)
        if len(asked) - len(found) > FEW_CHECKS:
            return found
        parse = cache(lambda document: parse_document(document, documents[document.sha256 or ""]))
        left = [question for question in asked if question not in found and _is_small(question, documents)]
        fresh = {question: run_check(question, parse) for question in left}
        self._cache_results(fresh)
        return found | fresh

    def check(self, questions: Iterable[DocumentCheck], content: LoadDocument) -> dict[DocumentCheck, CheckResult]:
        """The results for all questions; a check that exceeds a limit is refused, and tried again at the next request.

        content: called in other threads as well. Blocks. Raises: KeyError when `content` lacks a document; ServerBusy
        when a process would be needed after `stop`.
        """
        asked = list(questions)
        found = self.cached_results(asked)
        left = [one for one in asked if one not in found]
        if len(left) <= FEW_CHECKS:
            small = self._small(left, content)
            found |= self.quick_results(left, small)
            left, content = [one for one in left if one not in found], _read_or_load(small, content)
        patience = _TimeBudget(self._bounds, len(left))
        documents = [one for one in left if isinstance(one, FormatCheck)]
        readings = [one for one in left if isinstance(one, CompatibilityCheck)]
        if len(left) > FEW_CHECKS:
            found.update(self._find(documents, content, patience))
            # A document that is invalid in its format is not compared with others.
            found |= {one: flaw for one in readings if (flaw := found.get(one.reader) or found.get(one.writer))}
            documents, readings = [], [one for one in readings if one not in found]
        found.update(self._find([*documents, *readings], content, patience))
        self._cache_results({one: found[one] for one in left if one in found and found[one] not in _UNDONE})
        return {one: found.get(one, (TIMED_OUT,)) for one in asked}

    def stop(self) -> None:
        """Abandons running checks; their callers get ServerBusy at once."""
        self._asker.close()

    def _find(
        self, questions: Sequence[DocumentCheck], content: LoadDocument, patience: _TimeBudget
    ) -> Iterator[tuple[DocumentCheck, CheckResult]]:
        """The results, as far as the time budget allows; sends only enough batches to keep the processes busy."""
        waiting, running = self._batches(questions, content), deque[tuple[_CheckBatch, Future[CheckResponse]]]()
        while True:
            while len(running) <= self._bounds.workers and patience.is_left and (lot := next(waiting, None)):
                running.append((lot, self._start(lot)))
            if not running:
                return
            lot, future = running.popleft()
            told = future.result()
            yield from zip(lot.questions, told.results, strict=False)
            left = lot.questions[len(told.results) :]
            if told.failure and (lot.careful or len(left) == 1):
                verdict = (told.failure,)
                patience.losses += 1
                yield left[0], verdict
                yield from ((one, verdict) for one in left[1:] if left[0] in one)
                left = [one for one in left[1:] if left[0] not in one]
            if left and patience.is_left:
                again = lot._replace(questions=left, careful=True)
                running.appendleft((again, self._start(again)))

    def _batches(self, questions: Sequence[DocumentCheck], content: LoadDocument) -> Iterator[_CheckBatch]:
        """The questions in batches; a few questions make one batch, so that no document is parsed twice."""
        if 0 < len(questions) <= FEW_CHECKS:
            yield _CheckBatch(questions, content, careful=True)
            return
        some: list[DocumentCheck] = []
        sizes: dict[str, int] = {}
        read: dict[str, bytes] = {}
        for question in questions:
            some.append(question)
            for name in _names(question):
                if name not in sizes:
                    sizes[name] = self._size(name, content, read)
            if len(some) == BATCH_CHECKS or sum(sizes.values()) >= BATCH_BYTES:
                yield _CheckBatch(some, _read_or_load(read, content), careful=False)
                some, sizes, read = [], {}, {}
        if some:
            yield _CheckBatch(some, _read_or_load(read, content), careful=False)

    def _small(self, questions: Sequence[DocumentCheck], content: LoadDocument) -> dict[str, bytes]:
        """The small documents of tame formats, and others that had to be loaded to find their size."""
        read: dict[str, bytes] = {}
        for document in {one for question in questions for one in documents_of(question)}:
            name = document.sha256
            if name is not None and _is_tame(document) and self._size(name, content, read) <= SMALL_BYTES:
                read[name] = read[name] if name in read else content(name)
        return read

    def _size(self, name: str, content: LoadDocument, read: dict[str, bytes]) -> int:
        """The size of a document in bytes; a document that has to be loaded for it is added to `read`."""
        with self._lock:
            size = self._sizes.get(name)
        if size is None:
            read[name] = content(name)
            size = len(read[name])
            with self._lock:
                self._sizes[name] = size
                while len(self._sizes) > CACHE_SIZE:
                    self._sizes.popitem(last=False)
        return size

    def _start(self, lot: _CheckBatch) -> Future[CheckResponse]:
        workers = _shared_pool(self._bounds.workers, self._bounds.memory)
        return workers.submit(self._asker, CheckRequest(lot.questions, self._bounds.seconds, lot.careful), lot.content)

    def _cache_results(self, verdicts: CheckResults) -> None:
        with self._lock:
            self._cache.update(verdicts)
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)


class _CheckBatch(NamedTuple):
    """One batch for a process. careful: find out which question ended the process, if one does."""

    questions: Sequence[DocumentCheck]
    content: LoadDocument
    careful: bool


class _TimeBudget:
    """The time and failures that a request has left. losses: how many of its questions ended a process."""

    def __init__(self, bounds: CheckLimits, questions: int) -> None:
        self._times = bounds.max_losses
        self._deadline = monotonic() + bounds.seconds * (bounds.max_losses + questions / CHECKS_PER_TIMEOUT)
        self.losses = 0

    @property
    def is_left(self) -> bool:
        return self.losses < self._times and monotonic() < self._deadline


def _is_small(question: DocumentCheck, documents: Mapping[str, bytes]) -> bool:
    """Whether a question costs little, whatever its documents contain."""
    contents = [documents.get(one.sha256 or "") for one in documents_of(question) if _is_tame(one)]
    return len(contents) == len(documents_of(question)) and all(
        content is not None and len(content) <= SMALL_BYTES for content in contents
    )


def _is_tame(document: FormatCheck) -> bool:
    room = formats.find_format(document.format)
    return room is not None and room.is_cheap


def _names(question: DocumentCheck) -> list[str]:
    return [document.sha256 for document in documents_of(question) if document.sha256 is not None]


def _read_or_load(read: Mapping[str, bytes], content: LoadDocument) -> LoadDocument:
    """A function that returns documents from `read`, or else loads them."""

    def found(name: str) -> bytes:
        known = read.get(name)
        return known if known is not None else content(name)

    return found


def _shared_pool(workers: int, memory: int) -> CheckProcessPool:
    """The process pool; all registries of a program share it."""
    with _MAKING:
        return _cached_pool(workers, memory)


@lru_cache(maxsize=4)
def _cached_pool(workers: int, memory: int) -> CheckProcessPool:
    return CheckProcessPool(workers, memory)


_MAKING: Final = Lock()
