"""Lists as of a moment, in the formats of the audit trail."""

from __future__ import annotations

from collections.abc import Callable

from annals.api.audit.request_params import AuditParams
from annals.api.audit.responses import TableContent, stream_table
from annals.api.http import conditional
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshots import Snapshot
from annals.domain.errors import problems
from annals.projections.entities.view import View


async def stream_table_as_of(
    registry: Registry,
    request: Request,
    audit_params: AuditParams,
    snapshot: Snapshot,
    read_table: Callable[[View], TableContent],
) -> Response:
    """The list that `read_table` returns for the view of a moment, with the headers of the moment.

    Raises: NotFound before the first interaction; what `read_table` raises.
    """
    if snapshot.position == 0:
        raise problems.NotFound(request.path)
    try:
        response = await stream_table(registry, request, audit_params, lambda view: read_table(snapshot.view(view)))
    except conditional.NotModified as not_modified:
        response = conditional.not_modified_response(request, not_modified)
    return snapshot.add_headers(response, request)
