"""What the surfaces of the audit trail share: the requested xid, access checks, pages, and streamed responses."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

from starlette.types import Receive

from annals.api.audit.formats import CONTENT_TYPES, ListWrapper, TableFormat, TableLayout, negotiate_format, write_table
from annals.api.audit.queries import xid_of
from annals.api.audit.request_params import AuditParams
from annals.api.http import conditional
from annals.api.http.methods import check_caller, read_only_options
from annals.api.http.next_link import next_link
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.registry.open_registry import Registry
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.domain.values import xid as xids
from annals.projections.entities.view import View

#: Number of segments before the path of an entity.
_PREFIX_SEGMENTS: Final = 2
_VARY: Final = (b"vary", b"accept")
#: Characters that no segment of an xid has; a slash was percent-encoded.
_NO_SEGMENT: Final = frozenset("/\0")


class PositionsPage(NamedTuple):
    """The positions in one response, and a link to the next page."""

    positions: Iterable[int]
    links: Headers


class TableContent(NamedTuple):
    """The content of a response before it is written. position: of the log; the entity tag depends on it."""

    table: TableLayout[Any]
    items: Iterable[Any]
    position: int
    wrapper: ListWrapper | None = None
    links: Headers = []


#: The parameters of a request, and the function that makes the response's content from a view.
RequestedTable = tuple[AuditParams, Callable[[View], TableContent]]
PrepareTable = Callable[[Registry, Request], RequestedTable]


def subject_xid(request: Request) -> str:
    """The xid of the entity or collection in the path.

    Raises: Forbidden; NotFound for an entity that the caller may not see.
    """
    segments = request.segments[_PREFIX_SEGMENTS:]
    check_caller(replace(request, segments=segments))
    if not all(segments) or not _NO_SEGMENT.isdisjoint("".join(segments)):
        raise problems.NotFound(request.path)
    xid = xid_of(segments)
    if xids.is_outside_tree(xids.stream(xid) + "/") and not may_see_outside_tree(request.caller):
        raise problems.NotFound(request.path)
    return xid


def may_see_outside_tree(caller: Caller) -> bool:
    """Whether a caller may see the history of subscriptions and links, which is for admins only (SUB-911)."""
    return caller.is_admin


def paginate(request: Request, audit_params: AuditParams, positions: Iterator[int]) -> PositionsPage:
    """As many positions as the request asks for; all of them without a limit."""
    if audit_params.limit is None:
        return PositionsPage(positions, [])
    page = list(islice(positions, audit_params.limit + 1))
    has_more = len(page) > audit_params.limit
    return PositionsPage(
        page[: audit_params.limit], [next_link(request, str(page[audit_params.limit - 1]))] if has_more else []
    )


async def stream_table(
    registry: Registry, request: Request, audit_params: AuditParams, read_table: Callable[[View], TableContent]
) -> Response:
    """The list that `read_table` returns for one snapshot, in the requested format.

    Raises: what `read_table` raises.
    """
    format = audit_params.format or negotiate_format(request)

    def job() -> Generator[Any, None, None]:
        with registry.readers.view() as view:
            content = read_table(view)
            tag = entity_tag(content.position, request, format)
            conditional.check_conditions(request, tag)
            links = [root_link(request.base), *content.links]
            yield [CONTENT_TYPES[format], *links, _VARY, *conditional.tag_headers(tag)]
            yield from write_table(format, content.table, content.items, content.wrapper)

    headers, body = await registry.streams.start(job)
    return Response(200, headers, body)


class AuditRoutes:
    """A read-only surface that shows one list. prepare: checks a request before the store is read."""

    def __init__(self, registry: Registry, prepare: PrepareTable) -> None:
        self._registry = registry
        self._prepare = prepare

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: MethodNotAllowed, and what the surface's own function raises."""
        if (options := read_only_options(request)) is not None:
            return options
        wanted, look = self._prepare(self._registry, request)
        return await stream_table(self._registry, request, wanted, look)


def entity_tag(position: int, request: Request, format: TableFormat) -> bytes:
    """The entity tag of a list in a format. position: of the log.

    Each caller has tags of its own, because some lists show keys, grants and subscriptions to a few (ACC-82).
    """
    caller = f"{format}#{request.caller.is_admin}#{request.caller.name}".encode()
    tagged_request = replace(request, query=b"%b#%b" % (request.query, caller))
    return conditional.log_tag(position, tagged_request, (0, 0))
