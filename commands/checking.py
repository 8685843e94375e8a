"""What runs in the processes that check documents: questions and bytes in, verdicts out."""

from __future__ import annotations

import signal
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.checks import Document, Question, Verdict, judge, parsed
from domain.formats import Violation

#: How many bytes of documents a process keeps the parsed forms of.
KEPT: Final = 32 << 20
#: A nested document costs frames; what goes deeper is refused by its format.
DEEP: Final = 3000


class Shelf:
    """The parsed forms of the documents used last, bounded by the bytes of the documents."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._bytes = 0
        self._held: OrderedDict[Document, tuple[int, Any]] = OrderedDict()

    def parsed(self, document: Document, documents: Mapping[str, bytes]) -> Any:
        """A document's parsed form. Raises: Violation."""
        held = self._held.get(document)
        if held is None:
            held = self._put(document, documents[document.sha256 or ""])
        self._held.move_to_end(document)
        if isinstance(held[1], Violation):
            raise held[1]
        return held[1]

    def _put(self, document: Document, content: bytes) -> tuple[int, Any]:
        try:
            made = len(content), parsed(document, content)
        except Violation as violation:
            made = len(content), violation
        self._held[document] = made
        self._bytes += len(content)
        while self._bytes > self._kept and len(self._held) > 1:
            self._bytes -= self._held.popitem(last=False)[1][0]
        return made


_SHELF: Final = Shelf()


def prepare(memory: int) -> None:
    """Makes this process one that checks documents. memory: how many bytes it may take."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted server ends its processes itself
    sys.setrecursionlimit(DEEP)
    try:
        import resource
    except ImportError:  # not a Unix
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def work(questions: Sequence[Question], documents: Mapping[str, bytes]) -> list[Verdict]:
    """The verdicts, in the order of the questions."""
    return [judge(question, lambda document: _SHELF.parsed(document, documents)) for question in questions]
