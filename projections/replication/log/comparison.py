"""The differences between two registries in a link's scope: the other one at a log position, this one now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json
from annals.projections.audit.hash_comparison import (
    HashDifference,
    HashQuery,
    HashSource,
    differences,
    is_hash_response,
)
from annals.projections.audit.tree_hashes import KeyRange, TreeHashes, key_range_of, part_members
from annals.projections.entities.view import View
from annals.projections.replication.log.scope_roots import roots_in_both, scope_roots
from annals.projections.replication.remote.json_answers import position_of, request_object
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

_HEAD_PATH: Final = "/-/log/head"
#: The status of a registry that does not know the requested position.
UNKNOWN_POSITION: Final = 400
#: A state hash in hex.
_STATE: Final = re.compile(r"[0-9a-f]{64}")


class RemoteSnapshot(NamedTuple):
    """The other registry after an interaction. state: its state hash in hex. time: RFC 3339, empty if it has none."""

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
        if error.status != UNKNOWN_POSITION:
            raise
        return _fetch_snapshot(remote, {})


def log_position(remote: RemoteClient, xregcorrelationid: str) -> int:
    """The last position of an interaction in the other log. Raises: RemoteError, with 400 if it is not there."""
    query = {"asof": xregcorrelationid}
    return position_of(request_object(remote, "GET", _HEAD_PATH, params=query), f"GET {_HEAD_PATH}")


def find_differences(
    link: Link, view: View, remote: RemoteClient, snapshot: RemoteSnapshot, roots: Sequence[str] | None = None
) -> Iterator[HashDifference]:
    """The differences in tree order, each computed when requested; none if all is equal.

    roots: the xids whose subtrees are compared, if not all in scope. Raises: RemoteError, during iteration.
    """
    head = view.log.head()
    if link.scope.is_whole and head.state.hex() == snapshot.state:
        return
    hashes = view.tree_hashes(head.last)
    for root in roots_in_both(link, view, remote, snapshot.position) if roots is None else roots:
        try:
            yield from differences(_local_source(hashes, root), _remote_source(remote, root, snapshot.position))
        except RecursionError:
            raise RemoteError(f"GET {_hash_path(root)} answers with parts that never end") from None


class ComparedHashes(NamedTuple):
    """The hashes of a link's scope in both registries, in hex. position: of the other one's log."""

    position: int
    here: str
    there: str


def scope_hashes(
    link: Link, view: View, position: int, remote: RemoteClient, snapshot: RemoteSnapshot
) -> ComparedHashes:
    """The state hashes of two whole registries; of some Groups, the hash of their hashes. Raises: RemoteError.

    position: in this registry's log. Cost: of some Groups, a request for each.
    """
    if link.scope.is_whole:
        return ComparedHashes(snapshot.position, local_scope_hash(link, view, position), snapshot.state)
    roots = roots_in_both(link, view.as_of(position), remote, snapshot.position)
    there = _joined_hash([_remote_hash(remote, root, snapshot.position) for root in roots])
    return ComparedHashes(snapshot.position, _joined_local_hash(view, position, roots), there)


def local_scope_hash(link: Link, view: View, position: int) -> str:
    """The hash of a link's scope in this registry as of a log position, in hex; see `scope_hashes`."""
    if link.scope.is_whole:
        return view.log.interaction_at(position).state.hex()
    return _joined_local_hash(view, position, scope_roots(link, view.as_of(position)))


def _joined_local_hash(view: View, position: int, roots: Sequence[str]) -> str:
    hashes = view.tree_hashes(position)
    return _joined_hash([_local_hash(hashes, root) for root in roots])


def _local_hash(hashes: TreeHashes, root: str) -> str:
    """The hash of an entity with all below it; empty if there is nothing."""
    parts = hashes.split_evenly(key_range_of(root), 1)
    return str(part_members(parts[0])["hash"]) if parts else ""


def _remote_hash(remote: RemoteClient, root: str, position: int) -> str:
    """The same in the other registry. Raises: RemoteError."""
    part = _remote_source(remote, root, position)({})
    return str(part["hash"]) if part["count"] else ""


def _joined_hash(hashes: Sequence[str]) -> str:
    return hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest()


def _fetch_snapshot(remote: RemoteClient, query: dict[str, str]) -> RemoteSnapshot:
    """The head of the other log. Raises: RemoteError, also for an answer that is no head."""
    head, request_line = request_object(remote, "GET", _HEAD_PATH, params=query), f"GET {_HEAD_PATH}"
    position, state = position_of(head, request_line), head.get("state")
    if not isinstance(state, str) or not _STATE.fullmatch(state):
        raise RemoteError(
            f"{request_line} answers without a state hash of 64 hex digits, which a credential for everything shows"
        )
    return RemoteSnapshot(position, state, _utc_time(head.get("time", ""), request_line))


def _utc_time(time: Json, request_line: str) -> str:
    """A time in UTC; empty for an empty one. Raises: RemoteError."""
    try:
        return to_utc(time) if time != "" else ""
    except (ValueError, OverflowError, TypeError):
        raise RemoteError(f"{request_line} answers with a time that is not an RFC 3339 timestamp") from None


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
    path = _hash_path(root)

    def ask(query: HashQuery) -> dict[str, Any]:
        response = request_object(remote, "GET", path, params={**query, "asof": str(position)})
        if not is_hash_response(response, query):
            raise RemoteError(f"GET {path} answers with something that is not the hashes of these parts")
        return response

    return ask


def _hash_path(root: str) -> str:
    return f"/-/hash{quote(root)}"
