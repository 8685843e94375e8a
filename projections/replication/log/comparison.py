"""The differences between two registries in a link's scope: the other one at a log position, this one now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.audit.hash_comparison import HashDifference, HashQuery, HashSource, differences
from annals.projections.audit.tree_hashes import KeyRange, TreeHashes, key_range_of, part_members
from annals.projections.entities.view import View
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: The status of a registry that does not know the requested position.
_UNKNOWN_POSITION: Final = 400


class RemoteSnapshot(NamedTuple):
    """The other registry after an interaction. state: its state hash in hex. time: RFC 3339."""

    position: int
    state: str
    time: str


def remote_snapshot(remote: RemoteClient, position: int | None = None) -> RemoteSnapshot:
    """The other registry at a log position; as it is now if no position is given or it does not know it.

    Raises: RemoteError.
    """
    if position is None:
        return _fetch_snapshot(remote, {})
    try:
        return _fetch_snapshot(remote, {"asof": str(position)})
    except RemoteError as error:
        if error.status != _UNKNOWN_POSITION:
            raise
        return _fetch_snapshot(remote, {})


def find_differences(
    link: Link, view: View, remote: RemoteClient, snapshot: RemoteSnapshot
) -> Iterator[HashDifference]:
    """The differences in tree order, each computed when requested; none if all is equal.

    If a filter selects Groups, only those that exist here are compared. Raises: RemoteError, during iteration.
    """
    head = view.log.head()
    if link.scope.is_whole and head.state.hex() == snapshot.state:
        return
    hashes = view.tree_hashes(head.last)
    for root in scope_roots(link, view):
        yield from differences(_local_source(hashes, root), _remote_source(remote, root, snapshot.position))


class ComparedHashes(NamedTuple):
    """The hashes of a link's scope in both registries, in hex. position: of the other one's log."""

    position: int
    here: str
    there: str


def scope_hashes(link: Link, view: View, remote: RemoteClient, snapshot: RemoteSnapshot) -> ComparedHashes:
    """The state hashes of two whole registries; of some Groups, the hash of their hashes. Raises: RemoteError.

    Cost: of some Groups, a request for each.
    """
    head = view.log.head()
    if link.scope.is_whole:
        return ComparedHashes(snapshot.position, head.state.hex(), snapshot.state)
    hashes = view.tree_hashes(head.last)
    roots = scope_roots(link, view)
    here = [_local_hash(hashes, root) for root in roots]
    there = [str(_remote_source(remote, root, snapshot.position)({})["hash"]) for root in roots]
    return ComparedHashes(snapshot.position, _joined_hash(here), _joined_hash(there))


def _local_hash(hashes: TreeHashes, root: str) -> str:
    """The hash of an entity with all below it; empty if there is nothing."""
    parts = hashes.split_evenly(key_range_of(root), 1)
    return str(part_members(parts[0])["hash"]) if parts else ""


def _joined_hash(hashes: Sequence[str]) -> str:
    return hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest()


def scope_roots(link: Link, view: View) -> list[str]:
    """The xids whose subtrees cover a link's scope."""
    if link.scope.is_whole:
        return [xids.REGISTRY]
    model = view.entity(xids.MODEL)
    types = loads(model.attributes)["model"].get("groups", {}) if model and link.scope.group_filter else {}
    local_xids = [row.xid for row in view.subtree(xids.REGISTRY, types)] if types else []
    return sorted({*link.scope.groups, *(xid for xid in map(xids.stream, local_xids) if link.scope.has(xid))})


def _fetch_snapshot(remote: RemoteClient, query: dict[str, str]) -> RemoteSnapshot:
    head = remote.request("GET", "/-/log/head", params=query).json()
    return RemoteSnapshot(head["position"], head["state"], head.get("time", ""))


def _local_source(hashes: TreeHashes, root: str) -> HashSource:
    keys = key_range_of(root)

    def ask(query: HashQuery) -> dict[str, Any]:
        low = xids.tree_key(query["from"][0]) if "from" in query else keys.low
        high = f"{xids.tree_key(query['to'][0])}!" if "to" in query else keys.high
        key_range = KeyRange(low, high)
        if "parts" in query:
            parts = hashes.split_evenly(key_range, int(query["parts"][0]))
        else:
            parts = hashes.split_at(key_range, [xids.tree_key(xid) for xid in query["at"]])
        return {"parts": list(map(part_members, parts))}

    return ask


def _remote_source(remote: RemoteClient, root: str, position: int) -> HashSource:
    def ask(query: HashQuery) -> dict[str, Any]:
        path, position_text = f"/-/hash{quote(root)}", str(position)
        response: dict[str, Any] = remote.request("GET", path, params={**query, "asof": position_text}).json()
        return response

    return ask
