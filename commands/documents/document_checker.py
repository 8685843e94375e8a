"""Checks documents in separate processes with limits on time and memory, before the write lock is taken.

This module does not read the log: it receives requests for checks and bytes, and returns results. It caches results,
because they never change.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from time import monotonic
from typing import Any, Final, NamedTuple

from annals.commands.documents.check_processes import CheckClient, CheckProcessPool, CheckResponse, LoadDocument
from annals.commands.documents.check_server import CheckRequest
from annals.domain import formats
from annals.domain.confluent import checks as schema_checks
from annals.domain.confluent.checks import SchemaCheck
from annals.domain.decisions.checks.document_checks import (
    CRASHED,
    OUT_OF_MEMORY,
    TIMED_OUT,
    AncestorsCheck,
    ChangesCheck,
    CheckResult,
    CheckResults,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
    ancestors_result,
    comparison_count,
    documents_of,
    parse_document,
    run_check,
)
from annals.domain.decisions.phases import PhaseCounter, ReportPhase
from annals.domain.search.fields_check import FieldsCheck
from annals.domain.values.batched import batched

__all__ = ["CheckLimits", "DocumentChecker", "LoadDocument"]

#: The maximum number of checks, and of document bytes, in one batch for a process.
BATCH_CHECKS: Final = 128
BATCH_BYTES: Final = 512 << 10
#: The number of AncestorsChecks whose comparisons, some thousands, are in memory at the same time.
LINEAGE_CHECKS: Final = 64
#: The calling thread checks documents of cheap formats (see `FormatModule.is_cheap`) up to this size in bytes, if a
#: request has at most this number of checks without a result.
SMALL_BYTES: Final = 8 << 10
FEW_CHECKS: Final = 4
#: The maximum number of cached results, and of cached document sizes.
CACHE_SIZE: Final = 100_000
#: This number of checks extends the time limit of a request by the time for one document.
CHECKS_PER_TIMEOUT: Final = 100

_FAILED_RESULTS: Final = {(one,) for one in (TIMED_OUT, OUT_OF_MEMORY, CRASHED)}


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """Limits of checking. seconds: for one document. memory: of one process, in bytes.

    max_losses: how many documents of a request may fail by these limits; after that the rest is not checked.
    """

    workers: int = 2
    seconds: float = 10.0
    memory: int = 2 << 30
    max_losses: int = 6


class DocumentChecker:
    """Runs checks of documents. Thread-safe."""

    def __init__(self, bounds: CheckLimits | None = None) -> None:
        self._limits = bounds or CheckLimits()
        self._client = CheckClient()
        self._cache: OrderedDict[DocumentCheck, CheckResult] = OrderedDict()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def cached_results(self, document_checks: Iterable[DocumentCheck]) -> dict[DocumentCheck, CheckResult]:
        """The cached results."""
        with self._lock:
            results = {
                document_check: self._cache[document_check]
                for document_check in document_checks
                if document_check in self._cache
            }
            for document_check in results:
                self._cache.move_to_end(document_check)
        return results

    def quick_results(
        self, document_checks: Iterable[DocumentCheck], documents: Mapping[str, bytes]
    ) -> dict[DocumentCheck, CheckResult]:
        """The cached results, and results of a few checks that cost less to check here than in a process."""
        checks = list(document_checks)
        results = self.cached_results(checks)
        if len(checks) - len(results) > FEW_CHECKS:
            return results
        parsed: dict[FormatCheck, Any] = {}

        def parse(document: FormatCheck) -> Any:
            if document not in parsed:
                parsed[document] = parse_document(document, documents[document.sha256 or ""])
            return parsed[document]

        uncached = [
            document_check
            for document_check in checks
            if document_check not in results and _is_small(document_check, documents)
        ]
        new_results = {document_check: run_check(document_check, parse) for document_check in uncached}
        self._cache_results(new_results)
        return results | new_results

    def check(
        self,
        document_checks: Iterable[DocumentCheck],
        load_document: LoadDocument,
        report_phase: ReportPhase | None = None,
    ) -> dict[DocumentCheck, CheckResult]:
        """The results for all checks; a check that exceeds a limit is refused, and tried again at the next request.

        load_document: called in other threads as well. report_phase: receives the number of checks that are done.
        Blocks. Raises: KeyError when `load_document` lacks a document; ServerBusy when a process would be needed after
        `stop`.
        """
        checks = list(document_checks)
        results = self.cached_results(checks)
        uncached = [check for check in checks if check not in results]
        new_results = (
            self._check_few(uncached, load_document, report_phase)
            if len(uncached) <= FEW_CHECKS and not any(isinstance(check, AncestorsCheck) for check in uncached)
            else self._check_many(uncached, results, load_document, report_phase)
        )
        self._cache_results(new_results)
        results |= new_results
        return {check: results.get(check, (TIMED_OUT,)) for check in checks}

    def stop(self) -> None:
        """Abandons running checks; their callers get ServerBusy at once."""
        self._client.close()

    def _check_few(
        self, document_checks: Sequence[DocumentCheck], load_document: LoadDocument, report_phase: ReportPhase | None
    ) -> dict[DocumentCheck, CheckResult]:
        """The results of a few checks: cheap ones run here, the others as one batch in a process."""
        small_documents = self._load_small_documents(document_checks, load_document)
        results = self.quick_results(document_checks, small_documents)
        documents, comparisons, _ = _split_checks(check for check in document_checks if check not in results)
        remaining = [*documents, *comparisons]
        request = self._start_request(remaining, _read_or_load(small_documents, load_document), report_phase)
        return results | dict(self._run_checks(remaining, request))

    def _check_many(
        self,
        document_checks: Sequence[DocumentCheck],
        cached_results: CheckResults,
        load_document: LoadDocument,
        report_phase: ReportPhase | None,
    ) -> dict[DocumentCheck, CheckResult]:
        """The results of many checks, which run in processes. cached_results: of other checks of the request."""
        documents, comparisons, lineages = _split_checks(document_checks)
        request = self._start_request(document_checks, load_document, report_phase)
        results = dict(self._run_checks(documents, request))
        document_results = {**cached_results, **results}
        results |= self._compare(comparisons, document_results, request)
        document_results |= self._check_ancestors(lineages, document_results, request)
        lineages.sort(key=_ancestor_hashes)  # most have documents in common, which are parsed once then
        for checks in batched(lineages, LINEAGE_CHECKS):
            pairs = dict.fromkeys(pair for check in checks for pair in check.comparisons())
            pair_results = self._compare(pairs, document_results, request)
            results |= {check: _lineage_result(check, pair_results, document_results) for check in checks}
        return results

    def _check_ancestors(
        self, lineages: Sequence[AncestorsCheck], document_results: CheckResults, request: _Request
    ) -> dict[DocumentCheck, CheckResult]:
        """The results of ancestors whose own checks are not in the request, because they were made before."""
        ancestors = {ancestor for check in lineages for ancestor in check.ancestors} - document_results.keys()
        results = self.cached_results(ancestors)
        uncounted = request._replace(counter=PhaseCounter(None, "checked"))
        return results | dict(self._run_checks([one for one in ancestors if one not in results], uncounted))

    def _compare(
        self, comparisons: Collection[CompatibilityCheck], document_results: CheckResults, request: _Request
    ) -> dict[DocumentCheck, CheckResult]:
        """The results of comparisons, as far as the time budget allows.

        A document that is invalid in its format is not compared with others.
        """
        results = self.cached_results(comparisons)
        results |= {
            check: failure
            for check in comparisons
            if (failure := document_results.get(check.reader) or document_results.get(check.writer))
        }
        request.counter.add(len(results))
        new_results = dict(self._run_checks([check for check in comparisons if check not in results], request))
        self._cache_results(new_results)
        return results | new_results

    def _start_request(
        self, checks: Sequence[DocumentCheck], load_document: LoadDocument, report_phase: ReportPhase | None
    ) -> _Request:
        count = sum(map(comparison_count, checks))
        return _Request(load_document, _TimeBudget(self._limits, count), PhaseCounter(report_phase, "checked", count))

    def _run_checks(
        self, document_checks: Sequence[DocumentCheck], request: _Request
    ) -> Iterator[tuple[DocumentCheck, CheckResult]]:
        """The results, as far as the time budget allows; sends only enough batches to keep the processes busy."""
        budget = request.budget
        batches, running = (
            self._batches(document_checks, request.load_document),
            deque[tuple[_CheckBatch, Future[CheckResponse]]](),
        )
        while True:
            while len(running) <= self._limits.workers and budget.is_left and (batch := next(batches, None)):
                running.append((batch, self._submit_batch(batch)))
            if not running:
                return
            batch, future = running.popleft()
            response = future.result()
            yield from zip(batch.document_checks, response.results, strict=False)
            request.counter.add(len(response.results))
            remaining = batch.document_checks[len(response.results) :]
            if response.failure and (batch.careful or len(remaining) == 1):
                result = (response.failure,)
                budget.losses += 1
                yield remaining[0], result
                yield from ((check, result) for check in remaining[1:] if remaining[0] in check)
                remaining = [check for check in remaining[1:] if remaining[0] not in check]
            if remaining and budget.is_left:
                retry = batch._replace(document_checks=remaining, careful=True)
                running.appendleft((retry, self._submit_batch(retry)))

    def _batches(self, document_checks: Sequence[DocumentCheck], load_document: LoadDocument) -> Iterator[_CheckBatch]:
        """The checks in batches; a few checks make one batch, so that no document is parsed twice."""
        if 0 < len(document_checks) <= FEW_CHECKS:
            yield _CheckBatch(document_checks, load_document, careful=True)
            return
        batch: list[DocumentCheck] = []
        sizes: dict[str, int] = {}
        loaded: dict[str, bytes] = {}
        for document_check in document_checks:
            batch.append(document_check)
            for name in _document_hashes(document_check):
                if name not in sizes:
                    sizes[name] = self._size(name, load_document, loaded)
            if len(batch) == BATCH_CHECKS or sum(sizes.values()) >= BATCH_BYTES:
                yield _CheckBatch(batch, _read_or_load(loaded, load_document), careful=False)
                batch, sizes, loaded = [], {}, {}
        if batch:
            yield _CheckBatch(batch, _read_or_load(loaded, load_document), careful=False)

    def _load_small_documents(
        self, document_checks: Sequence[DocumentCheck], load_document: LoadDocument
    ) -> dict[str, bytes]:
        """The small documents of cheap formats, and others that had to be loaded to find their size."""
        loaded: dict[str, bytes] = {}
        for document in {
            checked_document
            for document_check in document_checks
            if _is_cheap(document_check)
            for checked_document in documents_of(document_check)
        }:
            name = document.sha256
            if name is not None and self._size(name, load_document, loaded) <= SMALL_BYTES:
                loaded[name] = loaded[name] if name in loaded else load_document(name)
        return loaded

    def _size(self, name: str, load_document: LoadDocument, loaded: dict[str, bytes]) -> int:
        """The size of a document in bytes; a document that has to be loaded for it is added to `loaded`."""
        with self._lock:
            size = self._sizes.get(name)
        if size is None:
            loaded[name] = load_document(name)
            size = len(loaded[name])
            with self._lock:
                self._sizes[name] = size
                while len(self._sizes) > CACHE_SIZE:
                    self._sizes.popitem(last=False)
        return size

    def _submit_batch(self, batch: _CheckBatch) -> Future[CheckResponse]:
        workers = _process_pool(self._limits.workers, self._limits.memory)
        return workers.submit(
            self._client, CheckRequest(batch.document_checks, self._limits.seconds, batch.careful), batch.load_document
        )

    def _cache_results(self, results: CheckResults) -> None:
        with self._lock:
            self._cache.update(
                (check, result)
                for check, result in results.items()
                if result not in _FAILED_RESULTS and not _is_large(check)
            )
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)


class _CheckBatch(NamedTuple):
    """One batch for a process. careful: find out which check ended the process, if one does."""

    document_checks: Sequence[DocumentCheck]
    load_document: LoadDocument
    careful: bool


class _Request(NamedTuple):
    """What the checks of one request share."""

    load_document: LoadDocument
    budget: _TimeBudget
    counter: PhaseCounter


class _TimeBudget:
    """The time and failures that a request has left. losses: how many of its checks ended a process."""

    def __init__(self, limits: CheckLimits, check_count: int) -> None:
        self._max_losses = limits.max_losses
        self._deadline = monotonic() + limits.seconds * (limits.max_losses + check_count / CHECKS_PER_TIMEOUT)
        self.losses = 0

    @property
    def is_left(self) -> bool:
        return self.losses < self._max_losses and monotonic() < self._deadline


def _split_checks(
    document_checks: Iterable[DocumentCheck],
) -> tuple[list[DocumentCheck], list[CompatibilityCheck], list[AncestorsCheck]]:
    """The checks of documents by themselves, the comparisons of two, and those of one with many."""
    documents: list[DocumentCheck] = []
    comparisons: list[CompatibilityCheck] = []
    lineages: list[AncestorsCheck] = []
    for check in document_checks:
        if isinstance(check, CompatibilityCheck):
            comparisons.append(check)
        elif isinstance(check, AncestorsCheck):
            lineages.append(check)
        else:
            documents.append(check)
    return documents, comparisons, lineages


def _ancestor_hashes(check: AncestorsCheck) -> list[str]:
    return [ancestor.sha256 or "" for ancestor in check.ancestors]


def _lineage_result(check: AncestorsCheck, pair_results: CheckResults, document_results: CheckResults) -> CheckResult:
    """The result of a check from those of its comparisons; if one is missing, the time of the request was too short."""
    if any(pair not in pair_results for pair in check.comparisons()):
        return (TIMED_OUT,)
    if any(ancestor not in document_results for ancestor in check.ancestors):
        return (TIMED_OUT,)
    return ancestors_result(
        check, lambda one: (document_results if isinstance(one, FormatCheck) else pair_results)[one]
    )


def _is_small(document_check: DocumentCheck, documents: Mapping[str, bytes]) -> bool:
    """Whether a check costs little, whatever its documents contain."""
    if isinstance(document_check, AncestorsCheck):
        return False
    contents = [documents.get(document.sha256 or "") for document in documents_of(document_check)]
    return _is_cheap(document_check) and all(
        content is not None and len(content) <= SMALL_BYTES for content in contents
    )


def _is_large(document_check: DocumentCheck) -> bool:
    """Whether a check and its result may take as much memory as documents, while hardly anybody asks for it again."""
    return isinstance(document_check, ChangesCheck | FieldsCheck | AncestorsCheck)


def _is_cheap(document_check: DocumentCheck) -> bool:
    if isinstance(document_check, SchemaCheck):
        return schema_checks.is_cheap(document_check)
    format_modules = map(formats.find_format, {document.format for document in documents_of(document_check)})
    return all(format_module is not None and format_module.is_cheap for format_module in format_modules)


def _document_hashes(document_check: DocumentCheck) -> list[str]:
    return [document.sha256 for document in documents_of(document_check) if document.sha256 is not None]


def _read_or_load(loaded: Mapping[str, bytes], load_document: LoadDocument) -> LoadDocument:
    """A function that returns documents from `loaded`, or else loads them."""

    def find_document(name: str) -> bytes:
        document = loaded.get(name)
        return document if document is not None else load_document(name)

    return find_document


def _process_pool(workers: int, memory: int) -> CheckProcessPool:
    """The process pool; all registries of a program share it."""
    with _POOL_LOCK:
        return _create_process_pool(workers, memory)


@lru_cache(maxsize=4)
def _create_process_pool(workers: int, memory: int) -> CheckProcessPool:
    return CheckProcessPool(workers, memory)


_POOL_LOCK: Final = Lock()
