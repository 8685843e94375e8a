"""The subtrees that cover a link's scope, in this registry and in the other one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.view import View
from annals.projections.replication.remote.bounded_responses import MAX_RESPONSE_BYTES
from annals.projections.replication.remote.json_answers import request_object
from annals.projections.replication.remote.remote_client import RemoteClient
from annals.projections.replication.standard.cached_responses import CachedResponses

#: Groups in a page.
_PAGE_SIZE: Final = 1000


def scope_roots(link: Link, view: View) -> list[str]:
    """The xids whose subtrees cover a link's scope, as far as a filter selects Groups that exist here."""
    if link.scope.is_whole:
        return [xids.REGISTRY]
    model = view.entity(xids.MODEL)
    types = loads(model.attributes)["model"].get("groups", {}) if model and link.scope.group_filter else {}
    local_xids = [row.xid for row in view.subtree(xids.REGISTRY, types)] if types else []
    return sorted({*link.scope.groups, *(xid for xid in map(xids.stream, local_xids) if link.scope.has(xid))})


def roots_in_both(link: Link, view: View, remote: RemoteClient, position: int) -> list[str]:
    """The same with the Groups that exist at a position of the other log, and not here. Raises: RemoteError.

    Cost: if there is a filter, lists the Groups of the other registry.
    """
    roots = scope_roots(link, view)
    return roots if link.scope.group_filter is None else sorted({*roots, *_selected_groups(link, remote, position)})


def _selected_groups(link: Link, remote: RemoteClient, position: int) -> Iterator[str]:
    responses = CachedResponses(remote)
    for plural in fetch_modelsource(remote, position).get("groups") or {}:
        for id, _ in responses.members(f"/{plural}?asof={position}&limit={_PAGE_SIZE}"):
            if link.scope.has(group := xids.stream(xids.join(plural, id))):
                yield group


def fetch_modelsource(remote: RemoteClient, position: int) -> dict[str, Any]:
    """The model of the other registry at a position of its log. Raises: RemoteError."""
    params = {"asof": str(position)}
    return request_object(remote, "GET", "/modelsource", max_bytes=MAX_RESPONSE_BYTES, params=params)
