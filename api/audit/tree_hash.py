"""`/-/hash`: hashes of parts of the tree, now or at any moment, so that two registries can find their differences."""

from __future__ import annotations

from typing import Final

from annals.api.audit.formats import ListWrapper
from annals.api.audit.request_params import parse_audit_params
from annals.api.audit.responses import RequestedTable, TableContent, subject_xid
from annals.api.audit.tree_hash_params import HASH_PARAMS, HASH_TABLE, hash_tree_parts, parse_hash_params
from annals.api.http.query_params import query_params
from annals.api.http.request import Request
from annals.api.registry.open_registry import Registry
from annals.domain.errors import problems
from annals.domain.values import xid as xids
from annals.projections.entities.view import View

HASH: Final = "hash"


def tree_hash_table(registry: Registry, request: Request) -> RequestedTable:
    """The hashes. Raises: Forbidden; NotFound for an entity that the caller may not see; BadRequest."""
    xid, form = subject_xid(request), parse_audit_params(request.query, ("format",))
    if "\0" in xid or xids.is_outside_tree(xids.stream(xid) + "/"):
        raise problems.NotFound(request.path)
    choice = parse_hash_params(query_params(request, HASH_PARAMS), xid)

    def look(view: View) -> TableContent:
        found = hash_tree_parts(view.seen_by(request.caller, xid), xid, choice, registry.store.clock(), request.caller)
        return TableContent(HASH_TABLE, found.parts, found.position, ListWrapper(found.members, "parts"))

    return form, look
