"""Documents are checked in processes of their own, with bounds on time and memory, before the write lock is taken.

Nothing here knows the log: questions and bytes in, verdicts out. Verdicts are kept, because they hold for ever.
"""

from __future__ import annotations

import atexit
import multiprocessing
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from time import monotonic
from typing import Any, Final

from pebble import ProcessExpired, ProcessPool

from commands import checking
from domain import formats
from domain.checks import INVALID, Document, Question, Verdict, Verdicts, judge, parsed
from domain.formats import Incompatibility

#: The bytes of a document, by SHA-256.
Content = Callable[[str], bytes]

#: How many questions, and how many bytes of documents, go to a process at a time.
TOGETHER: Final = 128
BYTES: Final = 512 << 10
#: Small documents of tame formats, in bytes, and how many of them, are looked at by whoever asks.
SMALL: Final = 8 << 10
FEW: Final = 4
#: How many verdicts are kept.
KEPT: Final = 100_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What checking may take. seconds: for one document; a request may take so many times as much. memory: in bytes."""

    workers: int = 2
    seconds: float = 10.0
    memory: int = 2 << 30
    times: int = 6


class Checker:
    """Answers questions about documents; from any thread."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._kept: OrderedDict[Question, Verdict] = OrderedDict()
        self._lock = Lock()

    def known(self, questions: Iterable[Question]) -> dict[Question, Verdict]:
        """The answers that are kept."""
        with self._lock:
            found = {question: self._kept[question] for question in questions if question in self._kept}
            for question in found:
                self._kept.move_to_end(question)
        return found

    def at_hand(self, questions: Iterable[Question], documents: Mapping[str, bytes]) -> dict[Question, Verdict]:
        """The answers that are kept, and those to a few questions that are cheaper answered than sent to a process."""
        asked = list(questions)
        found = self.known(asked)
        if len(asked) - len(found) > FEW:
            return found
        left = [question for question in asked if question not in found and _is_small(question, documents)]
        fresh = {question: _judged(question, documents) for question in left}
        self._keep(fresh)
        return found | fresh

    def answers(self, questions: Iterable[Question], content: Content) -> dict[Question, Verdict]:
        """The answers to all questions; what takes too long or too much is refused, and asked again another time.

        Blocks. Raises: KeyError when `content` lacks a document.
        """
        asked = list(questions)
        found = self.known(asked)
        fresh = dict(self._found([question for question in asked if question not in found], content))
        self._keep({question: verdict for question, verdict in fresh.items() if verdict not in _UNDONE})
        return {**found, **fresh}

    def _found(self, questions: Sequence[Question], content: Content) -> Iterator[tuple[Question, Verdict]]:
        until = monotonic() + self._bounds.seconds * self._bounds.times
        running = [(some, self._start(some, documents)) for some, documents in _parcels(questions, content)]
        for some, future in running:
            verdicts = _outcome(future)
            if not isinstance(verdicts, Incompatibility):
                yield from zip(some, verdicts, strict=True)
            elif len(some) == 1:
                yield some[0], (verdicts,)
            else:
                for question in some:
                    yield question, self._alone(question, content) if monotonic() < until else (_LATE,)

    def _alone(self, question: Question, content: Content) -> Verdict:
        """The answer to a question whose company did not come back."""
        verdicts = _outcome(self._start([question], {name: content(name) for name in _names(question)}))
        return (verdicts,) if isinstance(verdicts, Incompatibility) else verdicts[0]

    def _start(self, questions: Sequence[Question], documents: dict[str, bytes]) -> Future[list[Verdict]]:
        pool = _pool(self._bounds.workers, self._bounds.memory)
        started: Future[list[Verdict]] = pool.schedule(
            checking.work, args=[questions, documents], timeout=self._bounds.seconds
        )
        return started

    def _keep(self, verdicts: Verdicts) -> None:
        with self._lock:
            self._kept.update(verdicts)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def _is_small(question: Question, documents: Mapping[str, bytes]) -> bool:
    """Whether a question is about one document that costs little whatever is in it."""
    if not isinstance(question, Document):
        return False
    room = formats.find(question.format)
    return room is not None and room.tame and len(documents[question.sha256 or ""]) <= SMALL


def _judged(question: Question, documents: Mapping[str, bytes]) -> Verdict:
    return judge(question, lambda document: parsed(document, documents[document.sha256 or ""]))


_LATE: Final = Incompatibility(INVALID, "checking it takes longer than is given to one document")
_HEAVY: Final = Incompatibility(INVALID, "checking it takes more memory than is given to one document")
_UNDONE: Final = ((_LATE,), (_HEAVY,))


def _outcome(future: Future[list[Verdict]]) -> list[Verdict] | Incompatibility:
    try:
        return future.result()
    except TimeoutError:
        return _LATE
    except ProcessExpired:
        return _HEAVY


def _parcels(questions: Sequence[Question], content: Content) -> Iterator[tuple[list[Question], dict[str, bytes]]]:
    """The questions in parcels, each with the documents that it is about."""
    some: list[Question] = []
    documents: dict[str, bytes] = {}
    for question in questions:
        some.append(question)
        documents |= {name: content(name) for name in _names(question) if name not in documents}
        if len(some) == TOGETHER or sum(map(len, documents.values())) >= BYTES:
            yield some, documents
            some, documents = [], {}
    if some:
        yield some, documents


def _names(question: Question) -> list[str]:
    about = (question,) if isinstance(question, Document) else (question.reader, question.writer)
    return [document.sha256 for document in about if document.sha256 is not None]


@lru_cache(maxsize=4)
def _pool(workers: int, memory: int) -> Any:
    """The processes, started when a document is first checked; all registries of a program share them."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPool(max_workers=workers, initializer=checking.prepare, initargs=[memory], context=context)
    atexit.register(pool.stop)
    return pool
