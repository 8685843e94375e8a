"""GET requests of the legacy APIs, now or as of a past moment.

Rows S1, S2, S5, S8, S10, S11, S13 and their M counterparts.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from api.compat.access import check_read
from api.compat.descriptions import MAX_LIMIT
from api.compat.entity_tags import check_conditions, group_entity_tag
from api.compat.paths import CompatPathKind, CompatTarget
from api.compat.request_params import AFTER, ASOF, LIMIT, URI, query_params
from api.compat.responses import document_response, json_response
from api.http import conditional
from api.http.asof import asof_suffix, escape_link_url, with_asof
from api.http.request import Request
from api.http.response import Response
from api.registry.open_registry import Registry
from api.xregistry.snapshots import Snapshot, Snapshots
from domain.compat.errors import invalid_definition
from domain.errors import problems
from domain.values import xid as xids
from projections.compat.definitions import group_object, member_ids, read_definition, version_by_uri
from projections.compat.versions import CompatVersion, CompatVersions
from projections.entities.query import View


class CompatReadContext(NamedTuple):
    """A request and the view that answers it.

    roots: URLs of the registry; the first is the prefix of stored URLs.
    """

    request: Request
    target: CompatTarget
    params: Mapping[str, str]
    view: View
    roots: tuple[str, ...]

    @property
    def asof_suffix(self) -> str:
        """The suffix that keeps URLs in the response at the same moment; empty without `asof`."""
        return asof_suffix(self.params.get(ASOF))


class CompatReadHandler:
    """Handles GET and HEAD requests. root: the registry URL that is the prefix of stored URLs."""

    def __init__(self, registry: Registry, moments: Snapshots, root: str) -> None:
        self._readers = registry.readers
        self._moments = moments
        self._root = root
        self._handlers: Mapping[CompatPathKind, Callable[[CompatReadContext], Response]] = {
            CompatPathKind.GROUPS: _groups,
            CompatPathKind.GROUP: _group,
            CompatPathKind.CHILDREN: _children,
            CompatPathKind.CHILD: _latest,
            CompatPathKind.VERSIONS: _versions,
            CompatPathKind.VERSION: _version,
            CompatPathKind.LOOKUP: _looked_up,
        }

    async def answer(self, request: Request, target: CompatTarget) -> Response:
        """The response to a read. Raises: Problem, NotModified."""
        given = query_params(request, target)
        if ASOF not in given:
            return await asyncio.to_thread(self._read, request, target, given)
        then = await self._moments.find(given[ASOF])
        if then.position == 0:  # the registry did not exist yet
            raise not_found(request)
        try:
            answer = await asyncio.to_thread(self._read, request, target, given, then)
        except conditional.NotModified as unchanged:
            answer = conditional.not_modified_response(request, unchanged)
        return then.add_headers(answer, request)

    def _read(
        self, request: Request, target: CompatTarget, given: Mapping[str, str], then: Snapshot | None = None
    ) -> Response:
        roots = tuple(dict.fromkeys((self._root, request.base)))
        with self._readers.view() as view:
            seen = then.view(view) if then else view
            return self._handlers[target.kind](CompatReadContext(request, target, given, seen, roots))


def _groups(look: CompatReadContext) -> Response:
    check_read(look.request.caller, look.target, look.request.path)
    return _listed(look, member_ids(look.view, f"/{look.target.family.groups}"))


def _group(look: CompatReadContext) -> Response:
    row = look.view.entity(look.target.groupxid)
    whole = check_read(look.request.caller, look.target, look.request.path)
    if row is None:
        raise not_found(look.request)
    found = group_object(row, look.target.family)
    if not whole:
        return json_response(look.request, 200, {"id": found["id"]})
    tag = group_entity_tag(row)
    check_conditions(look.request, tag)
    return json_response(look.request, 200, found, conditional.tag_headers(tag))


def _children(look: CompatReadContext) -> Response:
    _check_group(look)
    return _listed(look, member_ids(look.view, look.target.collection))


def _versions(look: CompatReadContext) -> Response:
    _check_group(look)
    if look.view.entity(look.target.xid) is None:
        raise not_found(look.request)
    return _listed(look, CompatVersions(look.view).numbers(look.target.xid))


def _latest(look: CompatReadContext) -> Response:
    _check_group(look)
    return _document(look, look.target.xid, CompatVersions(look.view).latest(look.target.xid))


def _version(look: CompatReadContext) -> Response:
    _check_group(look)
    xid = look.target.xid
    return _document(look, xid, CompatVersions(look.view).version(xid, look.target.number))


def _looked_up(look: CompatReadContext) -> Response:
    """The response with the Version that has a URI.

    A Version that the caller may not read is not found, so that a caller cannot probe for URIs (LEG-1104).
    """
    uri = look.params.get(URI)
    if not uri:
        raise invalid_definition(URI, "the URI of exactly one version is needed", "LEG-212")
    shown = version_by_uri(look.view, look.target.family, uri, look.roots)
    if shown is None or not look.request.caller.can_read(shown.row.xid):
        raise not_found(look.request)
    return _document(look, xids.join(*xids.segments(shown.row.xid)[:4]), shown)


def _document(look: CompatReadContext, xid: str, shown: CompatVersion | None) -> Response:
    found = read_definition(look.view, look.target.family, xid, shown, look.roots[0]) if shown is not None else None
    if found is None:
        raise not_found(look.request)
    if found.remote_url is None:
        check_conditions(look.request, found.etag)
    return document_response(found, look.request, look.asof_suffix)


def _check_group(look: CompatReadContext) -> None:
    """Checks that the Group exists and that the caller may read it.

    Raises: NotFound; Forbidden if the Group exists and the caller may learn only that.
    """
    known = look.view.entity(look.target.groupxid) is not None
    try:
        check_read(look.request.caller, look.target, look.request.path)
    except problems.Problem:
        if not known:
            raise not_found(look.request) from None
        raise
    if not known:
        raise not_found(look.request)


def not_found(request: Request) -> problems.Problem:
    """The problem for a path at which nothing exists."""
    return problems.NotFound(request.path)


def _listed(look: CompatReadContext, members: Sequence[Any]) -> Response:
    """All members, or one page of them with a link to the next page (LEG-203). Raises: InvalidDefinition."""
    limit, after = look.params.get(LIMIT), look.params.get(AFTER)
    start = bisect_right(members, _position(members, after)) if after is not None else 0
    if limit is None:
        return json_response(look.request, 200, members[start:], [conditional.NO_CACHE])
    size = _size(limit)
    page = members[start : start + size]
    links = [_next(look, limit, str(page[-1]))] if start + size < len(members) else []
    return json_response(look.request, 200, page, [conditional.NO_CACHE, *links])


def _position(members: Sequence[Any], after: str) -> Any:
    """The value after which a page begins, of the same type as the members. Raises: InvalidDefinition."""
    if not members or isinstance(members[0], str):
        return after
    if not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise invalid_definition(AFTER, f"{after!r} is not a number", "LEG-203")
    return int(after)


def _size(limit: str) -> int:
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 10 and 0 < int(limit) <= MAX_LIMIT):
        raise invalid_definition(LIMIT, f"{limit!r} is not a number from 1 to {MAX_LIMIT}", "LEG-203")
    return int(limit)


def _next(look: CompatReadContext, limit: str, last: str) -> tuple[bytes, bytes]:
    path = look.request.raw_path.rstrip("/")
    url = with_asof(f"{look.request.base}{path}?limit={limit}&after={quote(last, safe='')}", look.asof_suffix)
    return b"link", f"<{escape_link_url(url)}>;rel=next".encode("latin-1", "replace")
