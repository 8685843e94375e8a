"""The program of a process that checks documents: it reads questions and bytes, and writes results.

The protocol uses standard input and output. The client sends questions. The server lists the documents that it needs.
The client sends these, and the server writes one line for each result. Lines are JSON, because the client must not
unpickle data from a process that handles untrusted documents.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from domain import formats
from domain.decisions.document_checks import (
    OUT_OF_MEMORY,
    CheckResult,
    DocumentCheck,
    FormatCheck,
    parse_document,
    run_check,
)
from domain.formats import DocumentLocation, Incompatibility, InvalidDocument

#: The number of document bytes whose parsed forms a process caches, and the share of its memory (one part in
#: CACHE_SHARE) that these may use.
CACHED_BYTES: Final = 32 << 20
CACHE_SHARE: Final = 4
#: A nested document needs stack frames; its format refuses a document that nests deeper.
RECURSION_LIMIT: Final = 3000
#: Allocations between two garbage collections; objects of formats stay, so most collections would be wasted.
GC_THRESHOLD: Final = 100_000
#: The exit code of a process whose memory is too small for what it receives.
MEMORY_EXIT_CODE: Final = 71
#: The maximum number of results that wait to be sent: only this many questions can be the one that ended a process.
MAX_UNSENT: Final = 32

#: Audit events that no document may trigger. Opening files is allowed, because libraries open their own.
_REACHING_OUT: Final = (
    *("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.sendmsg", "socket.bind"),
    *("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn"),
)


class CheckRequest(NamedTuple):
    """Some questions. seconds: the limit for each. careful: send each result immediately."""

    questions: Sequence[DocumentCheck]
    seconds: float
    careful: bool


class ParsedDocumentCache:
    """The parsed forms of the documents used last, limited by the size of the documents in bytes."""

    def __init__(self, kept: int = CACHED_BYTES) -> None:
        self._max_bytes = kept
        self._bytes = 0
        self._documents: OrderedDict[FormatCheck, tuple[int, Any]] = OrderedDict()

    def __contains__(self, document: FormatCheck) -> bool:
        return document in self._documents

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, document: FormatCheck, documents: Mapping[str, bytes]) -> Any:
        """A document's parsed form. Raises: InvalidDocument."""
        held = self._documents.get(document)
        if held is None:
            held = self._put(document, documents[document.sha256 or ""])
        self._documents.move_to_end(document)
        if isinstance(held[1], InvalidDocument):
            raise held[1]
        return held[1]

    def clear(self) -> None:
        """Empties the cache."""
        self._documents.clear()
        self._bytes = 0
        gc.collect()

    def _put(self, document: FormatCheck, content: bytes) -> tuple[int, Any]:
        try:
            made = len(content), parse_document(document, content)
        except InvalidDocument as violation:
            made = len(content), violation.with_traceback(None)  # its frames would keep half-built objects alive
        self._documents[document] = made
        self._bytes += len(content)
        while self._bytes > self._max_bytes and len(self._documents) > 1:
            self._bytes -= self._documents.popitem(last=False)[1][0]
        return made


class CheckServer:
    """Answers the questions in one process. memory: the limit in bytes."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._shelf = ParsedDocumentCache()
        self._fixed = _memory_used()  # used by programs, not by documents

    def missing_documents(self, questions: Sequence[DocumentCheck]) -> list[str]:
        """The documents that the client has to send."""
        about = dict.fromkeys(one for question in questions for one in documents_of(question))
        return list({one.sha256: None for one in about if one.sha256 is not None and one not in self._shelf})

    def load_formats(self, questions: Sequence[DocumentCheck]) -> None:
        """Imports the modules that the questions need, so that no document's time limit includes the import."""
        before = _memory_used()
        for name in {one.format for question in questions for one in documents_of(question)}:
            room = formats.find_format(name)
            if room is not None:
                with suppress(Exception):  # the check fails again and reports it
                    room.load()
        self._fixed += _memory_used() - before

    def result_of(self, question: DocumentCheck, documents: Mapping[str, bytes]) -> CheckResult:
        """The result for a question; after a lack of memory, the server empties its cache and tries once more."""
        alone = not len(self._shelf)
        found = self._run(question, documents)
        if found == (OUT_OF_MEMORY,):
            self._shelf.clear()
            if not alone and all(one.sha256 in documents for one in documents_of(question)):
                found = self._run(question, documents)
        return found

    def needs_parsing(self, question: DocumentCheck) -> bool:
        """Whether a document has to be parsed to answer the question."""
        return any(one not in self._shelf for one in documents_of(question))

    def trim_cache(self) -> bool:
        """Empties the cache when memory use is high; whether a new process should replace this one."""
        most = self._fixed + self._memory // CACHE_SHARE
        if _memory_used() > most:
            self._shelf.clear()
        return _memory_used() > most

    def _run(self, question: DocumentCheck, documents: Mapping[str, bytes]) -> CheckResult:
        return run_check(question, lambda document: self._shelf.get(document, documents))


def documents_of(question: DocumentCheck) -> tuple[FormatCheck, ...]:
    """The documents that a question is about."""
    return (question,) if isinstance(question, FormatCheck) else (question.reader, question.writer)


def main(memory: int) -> None:
    """Answers questions until the client closes the pipe."""
    with os.fdopen(os.dup(0), "rb") as asked, os.fdopen(os.dup(1), "wb") as told:
        os.dup2(2, 1)  # output that a library prints is not part of the protocol
        prepare_process(memory)
        desk = CheckServer(memory)
        try:
            while _answer_request(desk, asked, told):
                pass
        except (EOFError, BrokenPipeError):
            pass
        except MemoryError:
            os._exit(MEMORY_EXIT_CODE)
    os._exit(0)


def prepare_process(memory: int) -> None:
    """Sets up this process for checking documents. memory: the limit in bytes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted server ends its processes itself
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.set_threshold(GC_THRESHOLD)
    sys.addaudithook(_deny_outside_access)
    try:
        import resource
    except ImportError:  # not a Unix
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _deny_outside_access(event: str, _: object) -> None:
    """Blocks network access and new processes, so that no document can trigger them through a library."""
    if event.startswith(_REACHING_OUT):
        raise PermissionError(f"{event} is not for documents")


def _answer_request(desk: CheckServer, asked: IO[bytes], told: IO[bytes]) -> bool:
    """Answers one batch of questions; whether this process can answer another one."""
    lot = CheckRequest(*pickle.load(asked))
    told.write(json.dumps(desk.missing_documents(lot.questions)).encode() + b"\n")
    told.flush()
    documents: dict[str, bytes] = pickle.load(asked)
    desk.load_formats(lot.questions)
    for line in _result_lines(desk, lot, documents, told):
        told.write(line)
    again = not desk.trim_cache()
    told.write(json.dumps(again).encode() + b"\n")
    told.flush()
    return again


def _result_lines(
    desk: CheckServer, lot: CheckRequest, documents: Mapping[str, bytes], told: IO[bytes]
) -> Iterator[bytes]:
    """One line for each result. Sends all earlier results before a question that may take long."""
    untold = 0
    for question in lot.questions:
        alone = lot.careful or desk.needs_parsing(question)
        if alone or untold >= MAX_UNSENT:
            told.flush()
            untold = 0
        _set_timeout(lot.seconds)
        verdict = desk.result_of(question, documents)
        _set_timeout(0)
        yield encode_result(verdict)
        untold += 1
        if alone:
            told.flush()


def _set_timeout(seconds: float) -> None:
    """Sets a timer with which the system ends this process, whatever it is doing; 0 cancels the timer."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def encode_result(verdict: CheckResult) -> bytes:
    """A result as a line."""
    return (
        json.dumps(
            [[one.rule, one.text, _spot_members(one.reader), _spot_members(one.writer)] for one in verdict]
        ).encode()
        + b"\n"
    )


def decode_result(line: bytes) -> CheckResult:
    """A result from its line."""
    return tuple(
        Incompatibility(
            rule, text, DocumentLocation(*reader) if reader else None, DocumentLocation(*writer) if writer else None
        )
        for rule, text, reader, writer in json.loads(line)
    )


def requested_documents(line: bytes, questions: Sequence[DocumentCheck]) -> list[str]:
    """The SHA-256 of each document that a line asks for; only documents that the questions are about."""
    asked = json.loads(line)
    about = {one.sha256 for question in questions for one in documents_of(question)}
    return [name for name in asked if name in about]


def _spot_members(spot: DocumentLocation | None) -> list[Any] | None:
    return None if spot is None else [spot.pointer, spot.line, spot.fragment]


def _memory_used() -> int:
    """The bytes of address space that this process uses; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
