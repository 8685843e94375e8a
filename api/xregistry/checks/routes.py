"""`/-/check`: whether a document could become the next Version of a Resource, without writing it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from starlette.types import Receive

from annals.api.http.limits import read_body
from annals.api.http.methods import check_caller, post_only_options
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import JSON, Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.checks.candidate import CandidateVersion
from annals.api.xregistry.checks.check import load_candidate
from annals.api.xregistry.checks.request_params import parse_check_params
from annals.api.xregistry.request.paths import PathKind, resolve_path
from annals.domain.decisions.checks.document_checks import CheckResults
from annals.domain.errors import problems
from annals.domain.values.json_text import dumps

CHECK: Final = "check"

#: Number of concurrent checks. They have their own threads: a check may wait long, and other requests need the shared
#: ones.
MAX_CONCURRENT_CHECKS: Final = 8


class CheckRoutes:
    """The surface of `/-/check`, for every caller that may read the Resource."""

    def __init__(self, registry: Registry, max_body: int) -> None:
        self._registry = registry
        self._max_body = max_body
        self._definitions_cache = registry.definitions
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_CHECKS, thread_name_prefix="annals-check")

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: NotFound, Forbidden, BadRequest, MethodNotAllowed."""
        if (options := post_only_options(request)) is not None:
            return options
        check_caller(replace(request, method="GET", segments=request.segments[2:]))
        content = await read_body(request, receive, self._max_body)
        report = await asyncio.get_running_loop().run_in_executor(self._threads, self._check, request, content)
        return Response(200, [JSON, root_link(request.base)], report)

    def _check(self, request: Request, content: bytes) -> bytes:
        params = parse_check_params(request)
        with self._registry.readers.view() as view:
            definitions = self._definitions_cache.current(view)
            target = resolve_path(request.segments[2:], definitions.model)
            if target.kind is not PathKind.RESOURCE or target.resource is None or not target.resource.hasdocument:
                raise problems.NotFound(target.xid, detail="it is not a Resource with documents")
            candidate = load_candidate(view, target, content, params)
        # Documents never change, so the check runs without a snapshot of the database.
        return dumps(candidate.report(self._check_results(candidate, content)))

    def _check_results(self, candidate: CandidateVersion, content: bytes) -> CheckResults:
        candidate_sha256, readers = candidate.document.sha256, self._registry.readers

        def document(sha256: str) -> bytes:
            return content if sha256 == candidate_sha256 else readers.quick_view().document(sha256)

        return self._registry.checker.check(frozenset(candidate.checks()), document)
