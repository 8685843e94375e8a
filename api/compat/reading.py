"""GET requests of the legacy APIs, now or as of a past moment.

Rows S1, S2, S5, S8, S10, S11, S13 and their M counterparts.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from annals.api.compat.access import check_read
from annals.api.compat.descriptions import MAX_LIMIT
from annals.api.compat.entity_tags import check_conditions, group_entity_tag
from annals.api.compat.paths import CompatPathKind, CompatTarget
from annals.api.compat.request_params import AFTER, ASOF, LIMIT, URI, query_params
from annals.api.compat.responses import document_response, json_response
from annals.api.http import conditional
from annals.api.http.asof import asof_suffix, escape_link_url, with_asof
from annals.api.http.query_params import bounded_number
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshots import Snapshot, Snapshots
from annals.domain.compat.errors import invalid_definition
from annals.domain.errors import problems
from annals.domain.values import xid as xids
from annals.projections.compat.definitions import group_object, member_ids, read_definition, version_by_uri
from annals.projections.compat.versions import CompatVersion, CompatVersions
from annals.projections.entities.view import View

#: Largest number of a Version that `after` may have.
_MAX_NUMBER: Final = 10**18 - 1


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
    """Handles GET and HEAD requests. root_url: the registry URL that is the prefix of stored URLs."""

    def __init__(self, registry: Registry, snapshots: Snapshots, root_url: str) -> None:
        self._readers = registry.readers
        self._snapshots = snapshots
        self._root_url = root_url
        self._handlers: Mapping[CompatPathKind, Callable[[CompatReadContext], Response]] = {
            CompatPathKind.GROUPS: _list_groups,
            CompatPathKind.GROUP: _read_group,
            CompatPathKind.CHILDREN: _list_children,
            CompatPathKind.CHILD: _read_latest,
            CompatPathKind.VERSIONS: _list_versions,
            CompatPathKind.VERSION: _read_version,
            CompatPathKind.LOOKUP: _find_by_uri,
        }

    async def answer(self, request: Request, target: CompatTarget) -> Response:
        """The response to a read. Raises: Problem, NotModified."""
        parameters = query_params(request, target)
        if ASOF not in parameters:
            return await asyncio.to_thread(self._read, request, target, parameters)
        snapshot = await self._snapshots.find(parameters[ASOF])
        if snapshot.position == 0:  # the registry did not exist yet
            raise not_found(request)
        try:
            response = await asyncio.to_thread(self._read, request, target, parameters, snapshot)
        except conditional.NotModified as not_modified:
            response = conditional.not_modified_response(request, not_modified)
        return snapshot.add_headers(response, request)

    def _read(
        self, request: Request, target: CompatTarget, parameters: Mapping[str, str], snapshot: Snapshot | None = None
    ) -> Response:
        roots = tuple(dict.fromkeys((self._root_url, request.base)))
        with self._readers.view() as view:
            seen_view = snapshot.view(view) if snapshot else view
            return self._handlers[target.kind](CompatReadContext(request, target, parameters, seen_view, roots))


def _list_groups(context: CompatReadContext) -> Response:
    caller = context.request.caller
    check_read(caller, context.target, context.request.path)
    return _page_response(context, member_ids(context.view.seen_by(caller), f"/{context.target.family.groups}"))


def _read_group(context: CompatReadContext) -> Response:
    check_read(context.request.caller, context.target, context.request.path)
    row = context.view.entity(context.target.groupxid)
    if row is None:
        raise not_found(context.request)
    members = group_object(row, context.target.family)
    tag = group_entity_tag(row)
    check_conditions(context.request, tag)
    return json_response(context.request, 200, members, conditional.tag_headers(tag))


def _list_children(context: CompatReadContext) -> Response:
    _check_group(context)
    return _page_response(context, member_ids(context.view, context.target.collection))


def _list_versions(context: CompatReadContext) -> Response:
    _check_group(context)
    if context.view.entity(context.target.xid) is None:
        raise not_found(context.request)
    return _page_response(context, CompatVersions(context.view).numbers(context.target.xid))


def _read_latest(context: CompatReadContext) -> Response:
    _check_group(context)
    return _version_response(context, context.target.xid, CompatVersions(context.view).latest(context.target.xid))


def _read_version(context: CompatReadContext) -> Response:
    _check_group(context)
    xid = context.target.xid
    return _version_response(context, xid, CompatVersions(context.view).version(xid, context.target.number))


def _find_by_uri(context: CompatReadContext) -> Response:
    """The response with the Version that has a URI.

    A Version that the caller may not read is not found, so that a caller cannot probe for URIs (LEG-1104).
    """
    uri = context.params.get(URI)
    if not uri:
        raise invalid_definition(URI, "the URI of exactly one version is needed", "LEG-212")
    compat_version = version_by_uri(context.view, context.target.family, uri, context.roots)
    if compat_version is None or not context.request.caller.can_read(compat_version.row.xid):
        raise not_found(context.request)
    return _version_response(context, xids.resource_of(compat_version.row.xid), compat_version)


def _version_response(context: CompatReadContext, xid: str, compat_version: CompatVersion | None) -> Response:
    definition = (
        read_definition(context.view, context.target.family, xid, compat_version, context.roots[0])
        if compat_version is not None
        else None
    )
    if definition is None:
        raise not_found(context.request)
    if definition.remote_url is None:
        check_conditions(context.request, definition.etag)
    return document_response(definition, context.request, context.asof_suffix)


def _check_group(context: CompatReadContext) -> None:
    """Checks that the Group exists and that the caller may read it. Raises: NotFound."""
    check_read(context.request.caller, context.target, context.request.path)
    if context.view.entity(context.target.groupxid) is None:
        raise not_found(context.request)


def not_found(request: Request) -> problems.Problem:
    """The problem for a path at which nothing exists."""
    return problems.NotFound(request.path)


def _page_response(context: CompatReadContext, members: Sequence[Any]) -> Response:
    """All members, or one page of them with a link to the next page (LEG-203). Raises: InvalidDefinition."""
    limit, after_member = context.params.get(LIMIT), context.params.get(AFTER)
    start_index = bisect_right(members, _page_start(members, after_member)) if after_member is not None else 0
    if limit is None:
        return json_response(context.request, 200, members[start_index:], [conditional.NO_CACHE])
    size = _parse_limit(limit)
    page = members[start_index : start_index + size]
    links = [_next_link(context, limit, str(page[-1]))] if start_index + size < len(members) else []
    return json_response(context.request, 200, page, [conditional.NO_CACHE, *links])


def _page_start(members: Sequence[Any], after_member: str) -> Any:
    """The value after which a page begins, of the same type as the members. Raises: InvalidDefinition."""
    if not members or isinstance(members[0], str):
        return after_member
    if (number := bounded_number(after_member, 0, _MAX_NUMBER)) is None:
        raise invalid_definition(AFTER, f"{after_member!r} is not a number", "LEG-203")
    return number


def _parse_limit(limit: str) -> int:
    if (size := bounded_number(limit, 1, MAX_LIMIT)) is None:
        raise invalid_definition(LIMIT, f"{limit!r} is not a number from 1 to {MAX_LIMIT}", "LEG-203")
    return size


def _next_link(context: CompatReadContext, limit: str, last_member: str) -> tuple[bytes, bytes]:
    path = context.request.raw_path.rstrip("/")
    url = with_asof(
        f"{context.request.base}{path}?limit={limit}&after={quote(last_member, safe='')}", context.asof_suffix
    )
    return b"link", f"<{escape_link_url(url)}>;rel=next".encode("latin-1", "replace")
