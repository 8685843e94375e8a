"""The program of a process that checks documents: it reads requests for checks and bytes, and writes results.

The protocol uses standard input and output. The client requests checks. The server lists the documents that it needs.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from annals.domain import formats
from annals.domain.decisions.checks.document_checks import (
    OUT_OF_MEMORY,
    CheckResult,
    DocumentCheck,
    FormatCheck,
    documents_of,
    parse_document,
    run_check,
)
from annals.domain.formats import DocumentLocation, Incompatibility, InvalidDocument

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
#: The maximum number of results that wait to be sent: only this many checks can be the one that ended a process.
MAX_UNSENT: Final = 32

#: Audit events that no document may trigger. Opening files is allowed, because libraries open their own.
_OUTSIDE_ACCESS_EVENTS: Final = (
    *("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.sendmsg", "socket.bind"),
    *("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn"),
)


class CheckRequest(NamedTuple):
    """Some checks. seconds: the limit for each. careful: send each result immediately."""

    document_checks: Sequence[DocumentCheck]
    seconds: float
    careful: bool


class DocumentsLost(BaseException):
    """A lack of memory has emptied the cache, so that documents are missing which were not sent again.

    No error of a check: this process ends, and the client repeats the rest in another one.
    """


class ParsedDocumentCache:
    """The parsed forms of the documents used last, limited by the size of the documents in bytes."""

    def __init__(self) -> None:
        self._bytes = 0
        self._documents: OrderedDict[FormatCheck, tuple[int, Any]] = OrderedDict()
        self._kept: frozenset[FormatCheck] = frozenset()

    def __contains__(self, document: FormatCheck) -> bool:
        return document in self._documents

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, document: FormatCheck, documents: Mapping[str, bytes]) -> Any:
        """A document's parsed form. Raises: InvalidDocument; DocumentsLost."""
        entry = self._documents.get(document)
        if entry is None and (document.sha256 or "") not in documents:
            raise DocumentsLost
        if entry is None:
            entry = self._put(document, documents[document.sha256 or ""])
        self._documents.move_to_end(document)
        if isinstance(entry[1], InvalidDocument):
            raise entry[1]
        return entry[1]

    def keep(self, documents: Iterable[FormatCheck]) -> None:
        """Keeps those of these documents that are here until the next call, because nobody sends them again."""
        self._kept = frozenset(document for document in documents if document in self._documents)
        for document in self._kept:
            self._documents.move_to_end(document)

    def clear(self) -> None:
        """Empties the cache."""
        self._documents.clear()
        self._bytes = 0
        gc.collect()

    def _put(self, document: FormatCheck, content: bytes) -> tuple[int, Any]:
        try:
            entry = len(content), parse_document(document, content)
        except InvalidDocument as violation:
            entry = len(content), violation.with_traceback(None)  # its frames would keep half-built objects alive
        self._documents[document] = entry
        self._bytes += len(content)
        while self._bytes > CACHED_BYTES:
            oldest = next(iter(self._documents))
            if oldest == document or oldest in self._kept:
                break
            self._bytes -= self._documents.pop(oldest)[0]
        return entry


class CheckServer:
    """Runs the checks in one process. memory_limit: in bytes."""

    def __init__(self, memory_limit: int) -> None:
        self._memory_limit = memory_limit
        self._cache = ParsedDocumentCache()
        self._base_memory = _memory_used()  # used by programs, not by documents

    def missing_documents(self, document_checks: Sequence[DocumentCheck]) -> list[str]:
        """The documents that the client has to send."""
        checked_documents = dict.fromkeys(
            document for document_check in document_checks for document in documents_of(document_check)
        )
        self._cache.keep(checked_documents)
        return list(
            {
                document.sha256: None
                for document in checked_documents
                if document.sha256 is not None and document not in self._cache
            }
        )

    def load_formats(self, document_checks: Sequence[DocumentCheck]) -> None:
        """Imports the modules that the checks need, so that no document's time limit includes the import."""
        memory_before = _memory_used()
        for name in {
            document.format for document_check in document_checks for document in documents_of(document_check)
        }:
            format_module = formats.find_format(name)
            if format_module is not None:
                with suppress(Exception):  # the check fails again and reports it
                    format_module.load()
        self._base_memory += _memory_used() - memory_before

    def result_of(self, document_check: DocumentCheck, documents: Mapping[str, bytes]) -> CheckResult:
        """The result for a check; after a lack of memory, the server empties its cache and tries once more."""
        was_empty = not len(self._cache)
        result = self._run(document_check, documents)
        if result == (OUT_OF_MEMORY,):
            self._cache.clear()
            if not was_empty and all(document.sha256 in documents for document in documents_of(document_check)):
                result = self._run(document_check, documents)
        return result

    def needs_parsing(self, document_check: DocumentCheck) -> bool:
        """Whether a document has to be parsed for the check."""
        return any(document not in self._cache for document in documents_of(document_check))

    def trim_cache(self) -> bool:
        """Empties the cache when memory use is high; whether a new process should replace this one."""
        limit = self._base_memory + self._memory_limit // CACHE_SHARE
        if _memory_used() > limit:
            self._cache.clear()
        return _memory_used() > limit

    def _run(self, document_check: DocumentCheck, documents: Mapping[str, bytes]) -> CheckResult:
        return run_check(document_check, lambda document: self._cache.get(document, documents))


def main(memory_limit: int) -> None:
    """Runs checks until the client closes the pipe."""
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as responses:
        os.dup2(2, 1)  # output that a library prints is not part of the protocol
        prepare_process(memory_limit)
        server = CheckServer(memory_limit)
        try:
            while _answer_request(server, requests, responses):
                pass
        except (EOFError, BrokenPipeError):
            pass
        except (MemoryError, DocumentsLost):
            os._exit(MEMORY_EXIT_CODE)
    os._exit(0)


def prepare_process(memory_limit: int) -> None:
    """Sets up this process for checking documents. memory_limit: in bytes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted server ends its processes itself
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.set_threshold(GC_THRESHOLD)
    sys.addaudithook(_deny_outside_access)
    try:
        import resource
    except ImportError:  # not a Unix
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _deny_outside_access(event: str, _: object) -> None:
    """Blocks network access and new processes, so that no document can trigger them through a library."""
    if event.startswith(_OUTSIDE_ACCESS_EVENTS):
        raise PermissionError(f"{event} is not for documents")


def _answer_request(server: CheckServer, requests: IO[bytes], responses: IO[bytes]) -> bool:
    """Runs one batch of checks; whether this process can run another one."""
    request = CheckRequest(*pickle.load(requests))
    responses.write(json.dumps(server.missing_documents(request.document_checks)).encode() + b"\n")
    responses.flush()
    documents: dict[str, bytes] = pickle.load(requests)
    server.load_formats(request.document_checks)
    for line in _result_lines(server, request, documents, responses):
        responses.write(line)
    can_continue = not server.trim_cache()
    responses.write(json.dumps(can_continue).encode() + b"\n")
    responses.flush()
    return can_continue


def _result_lines(
    server: CheckServer, request: CheckRequest, documents: Mapping[str, bytes], responses: IO[bytes]
) -> Iterator[bytes]:
    """One line for each result. Sends all earlier results before a check that may take long."""
    unsent = 0
    for document_check in request.document_checks:
        sends_at_once = request.careful or server.needs_parsing(document_check)
        if sends_at_once or unsent >= MAX_UNSENT:
            responses.flush()
            unsent = 0
        _set_timeout(request.seconds)
        result = server.result_of(document_check, documents)
        _set_timeout(0)
        yield encode_result(result)
        unsent += 1
        if sends_at_once:
            responses.flush()


def _set_timeout(seconds: float) -> None:
    """Sets a timer with which the system ends this process, whatever it is doing; 0 cancels the timer."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def encode_result(result: CheckResult) -> bytes:
    """A result as a line."""
    return (
        json.dumps(
            [
                [
                    difference.rule,
                    difference.text,
                    _location_members(difference.reader),
                    _location_members(difference.writer),
                ]
                for difference in result
            ]
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


def requested_documents(line: bytes, document_checks: Sequence[DocumentCheck]) -> list[str]:
    """The SHA-256 of each document that a line asks for; only documents that the checks are about."""
    requested = json.loads(line)
    known_hashes = {document.sha256 for document_check in document_checks for document in documents_of(document_check)}
    return [name for name in requested if name in known_hashes]


def _location_members(location: DocumentLocation | None) -> list[Any] | None:
    return None if location is None else [location.pointer, location.line, location.fragment]


def _memory_used() -> int:
    """The bytes of address space that this process uses; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
