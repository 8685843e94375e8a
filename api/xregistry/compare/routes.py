"""`/-/compare`: what changed between two Versions, or between a Version and a draft, with compatibility verdicts."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from starlette.types import Receive

from annals.api.audit.formats import CONTENT_TYPES, TableFormat, negotiate_format, write_table
from annals.api.audit.responses import entity_tag
from annals.api.http import conditional
from annals.api.http.limits import read_body
from annals.api.http.methods import check_caller, options_response
from annals.api.http.problem_response import root_link
from annals.api.http.query_params import QueryParams, invalid_param, query_params, single_value
from annals.api.http.request import READ_METHODS, Request
from annals.api.http.response import Headers, Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.compare.representations import CHANGE_TABLE, comparison_wrapper
from annals.api.xregistry.compare.sides import DRAFT_FORMAT, PARAMETERS, ComparedSide, SideReader
from annals.api.xregistry.request.paths import PathKind, RequestTarget, resolve_path
from annals.domain.decisions.checks.document_checks import ChangesCheck, read_changes
from annals.domain.errors import problems
from annals.domain.errors.problems import BadRequest

COMPARE: Final = "compare"

_FORMAT: Final = "format"
_DRAFT_PARAMETERS: Final = ("left", "leftasof", DRAFT_FORMAT)
_METHODS: Final = (*READ_METHODS, "POST")
_ALLOW: Final = "GET, HEAD, OPTIONS, POST"
_COMPARED_KINDS: Final = frozenset((PathKind.RESOURCE, PathKind.VERSION))
#: Number of concurrent comparisons. They have their own threads, as checks do, because each may wait long.
MAX_CONCURRENT_COMPARISONS: Final = 8


class CompareRoutes:
    """The surface of `/-/compare`, for every caller that may read the Resource. max_body: bytes of a draft."""

    def __init__(self, registry: Registry, max_body: int) -> None:
        self._registry = registry
        self._max_body = max_body
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_COMPARISONS, thread_name_prefix="annals-compare")

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: NotFound, Forbidden, BadRequest, MethodNotAllowed, NotModified."""
        if (options := options_response(request, _METHODS, _ALLOW)) is not None:
            return options
        check_caller(replace(request, method="GET", segments=request.segments[2:]))
        draft = await read_body(request, receive, self._max_body) if request.method == "POST" else None
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._compare, request, draft)

    def _compare(self, request: Request, draft: bytes | None) -> Response:
        parameters = query_params(request, {_FORMAT, *(PARAMETERS if draft is None else _DRAFT_PARAMETERS)})
        format = _response_format(request, parameters)
        headers: Headers = [CONTENT_TYPES[format], root_link(request.base)]
        with self._registry.readers.view() as stored:
            definitions = self._registry.definitions.current(stored)
            target = _compared_target(resolve_path(request.segments[2:], definitions.model))
            view = stored.seen_by(request.caller, target.xid)
            reader = SideReader(view, target, parameters, self._registry.store.clock())
            left, right = reader.both() if draft is None else reader.with_draft(draft)
            if draft is None:
                tag = entity_tag(view.position(), request, format)
                conditional.check_conditions(request, tag)
                headers += [(b"vary", b"accept"), *conditional.tag_headers(tag)]
        # Documents never change, so they are compared without a snapshot of the database.
        changes = self._changes(left, right, draft)
        wrapper = comparison_wrapper(target.xid, left, right, changes, request.caller)
        return Response(200, headers, b"".join(write_table(format, CHANGE_TABLE, changes["changes"], wrapper)))

    def _changes(self, left: ComparedSide, right: ComparedSide, draft: bytes | None) -> dict[str, Any]:
        """The members of the changes. Raises: BadRequest for documents that cannot be compared."""
        readers = self._registry.readers

        def document(sha256: str) -> bytes:
            is_draft = draft is not None and sha256 == right.document.sha256
            return draft if is_draft and draft is not None else readers.quick_view().document(sha256)

        both = ChangesCheck(left.document, right.document)
        results = self._registry.checker.check((*both, both), document)
        for side, name in ((left, "left"), (right, "right")):
            for violation in results[side.document]:
                raise BadRequest(error_detail=f"the {name} document cannot be compared: {violation.text}")
        changes = read_changes(results[both])
        if changes is None:
            raise BadRequest(error_detail=results[both][0].text)
        return changes


def _response_format(request: Request, parameters: QueryParams) -> TableFormat:
    name = single_value(parameters, _FORMAT)
    if name is None:
        return negotiate_format(request)
    if name not in list(TableFormat):
        raise invalid_param(_FORMAT, f"it takes {', '.join(TableFormat)}")
    return TableFormat(name)


def _compared_target(target: RequestTarget) -> RequestTarget:
    """The target, if it has documents. Raises: NotFound."""
    if target.kind not in _COMPARED_KINDS or target.resource is None or not target.resource.hasdocument:
        raise problems.NotFound(target.xid, detail="it is neither a Resource with documents nor one of its Versions")
    return target
