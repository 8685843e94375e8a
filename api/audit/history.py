"""`/-/history`: every revision of an entity, including a deleted one, and of everything below it.

A caller that may read an entity may also read who changed it, when and how. Only the registry itself has no history
for a caller with roles at some places, because it changes with each Group.
"""

from __future__ import annotations

from typing import Final

from annals.api.audit.queries import history_positions
from annals.api.audit.representations import revision_table
from annals.api.audit.request_params import parse_log_params
from annals.api.audit.responses import RequestedTable, TableContent, may_see_outside_tree, paginate, subject_xid
from annals.api.http.request import Request
from annals.api.registry.open_registry import Registry
from annals.projections.entities.view import View

HISTORY: Final = "history"
#: The accepted query parameters.
PARAMETERS: Final = ("images", "below", "order", "after", "limit", "from", "until", "caller", "id", "format")


def history_table(registry: Registry, request: Request) -> RequestedTable:
    """The revisions. Raises: NotFound for an entity that never existed, Forbidden, BadRequest."""
    xid, wanted = subject_xid(request), parse_log_params(request, PARAMETERS)
    apart = may_see_outside_tree(request.caller)

    def look(full_view: View) -> TableContent:
        view = full_view.seen_by(request.caller, xid)
        found = paginate(request, wanted, history_positions(view, xid, wanted, registry.store.clock(), apart))
        things = view.trail.revisions(found.positions, before="before" in wanted.images)
        return TableContent(revision_table(wanted.images), things, view.position(), links=found.links)

    return wanted, look
