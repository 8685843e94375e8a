"""`/-/diff`: compares two moments of an entity and of everything below it."""

from __future__ import annotations

from typing import Final

from annals.api.audit.formats import ListWrapper
from annals.api.audit.queries import compare_moments
from annals.api.audit.representations import DIFFERENCE_TABLE, moment_members
from annals.api.audit.request_params import parse_log_params
from annals.api.audit.responses import RequestedTable, TableContent, may_see_outside_tree, subject_xid
from annals.api.http.request import Request
from annals.api.registry.open_registry import Registry
from annals.domain.values import xid as xids
from annals.projections.entities.view import View

DIFF: Final = "diff"
#: The accepted query parameters.
PARAMETERS: Final = ("from", "to", "below", "format")


def diff_table(registry: Registry, request: Request) -> RequestedTable:
    """The differences. Raises: NotFound for an entity that never existed, Forbidden, BadRequest."""
    xid, wanted = subject_xid(request), parse_log_params(request, PARAMETERS)

    def look(full_view: View) -> TableContent:
        view = full_view.seen_by(request.caller, xid)
        before, after, found = compare_moments(view, xid, wanted, registry.store.clock())
        if not may_see_outside_tree(request.caller):
            found = (each for each in found if not xids.is_outside_tree(xids.stream(each.xid)))
        from_members, to_members = (moment_members(moment, request.caller) for moment in (before, after))
        around = ListWrapper({"xid": xid, "from": from_members, "to": to_members}, "entities")
        return TableContent(DIFFERENCE_TABLE, found, view.position(), around)

    return wanted, look
