"""`/-/counts`: how many entities of each type there are below an entity or a collection, now or at any moment."""

from __future__ import annotations

from typing import Final

from annals.api.audit.formats import ListWrapper, TableLayout
from annals.api.audit.request_params import parse_audit_params
from annals.api.audit.responses import RequestedTable, TableContent, subject_xid
from annals.api.http.query_params import query_params, single_value
from annals.api.http.request import Request
from annals.api.registry.open_registry import Registry
from annals.projections.entities.view import View

COUNTS: Final = "counts"
#: The accepted query parameters.
PARAMETERS: Final = ("asof", "format")

_TABLE: Final[TableLayout[tuple[str, int]]] = TableLayout(
    ("type", "count"),
    lambda row: {"type": row[0], "count": row[1]},
    lambda row: ({"type": row[0], "count": row[1]},),
)


def counts_table(registry: Registry, request: Request) -> RequestedTable:
    """The counts; none below an xid that does not exist.

    Raises: Forbidden; NotFound for an entity that the caller may not see; BadRequest.
    """
    xid, wanted = subject_xid(request), parse_audit_params(request.query, ("format",))
    asof = single_value(query_params(request, PARAMETERS), "asof")

    def look(present: View) -> TableContent:
        position = present.log.as_of(asof, registry.store.clock()).last if asof is not None else present.position()
        view = (present if asof is None else present.as_of(position)).seen_by(request.caller, xid)
        wrapper = ListWrapper({"xid": xid, "position": position}, COUNTS)
        return TableContent(_TABLE, view.counts_below(xid).items(), position, wrapper)

    return wanted, look
