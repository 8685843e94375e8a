"""What of a link's scope differs between the other registry, as of a position of its log, and this one as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from domain import xid as xids
from domain.jsontext import loads
from domain.links.link import Link
from projections.differing import Difference, Query, Side, differences
from projections.entities.query import View
from projections.hashes import Hashes, Keys, keys_of, members
from projections.replication.remote import Remote, RemoteError

#: Where a registry does not know a moment that it is asked for.
_NO_MOMENT: Final = 400


class Moment(NamedTuple):
    """The other registry once an interaction had ended. state: its state hash in hex. time: RFC 3339."""

    position: int
    state: str
    time: str


def moment(remote: Remote, position: int | None = None) -> Moment:
    """The other registry at a position of its log; as it is now where it has no such position, or none is given.

    Raises: RemoteError.
    """
    if position is None:
        return _moment(remote, {})
    try:
        return _moment(remote, {"asof": str(position)})
    except RemoteError as error:
        if error.status != _NO_MOMENT:
            raise
        return _moment(remote, {})


def differing(link: Link, view: View, remote: Remote, then: Moment) -> Iterator[Difference]:
    """What differs, in the order of the tree, each found when it is asked for; nothing where all is equal.

    Where a filter chooses Groups, those are looked at that are here. Raises: RemoteError, while it is gone through.
    """
    own = view.log.head()
    if link.scope.whole and own.state.hex() == then.state:
        return
    hashes = view.hashes(own.last)
    for root in roots(link, view):
        yield from differences(_own(hashes, root), _other(remote, root, then.position))


def roots(link: Link, view: View) -> list[str]:
    """Below which xids all of a scope is."""
    if link.scope.whole:
        return [xids.REGISTRY]
    model = view.entity(xids.MODEL)
    types = loads(model.attributes)["model"].get("groups", {}) if model and link.scope.passes else {}
    here = [row.xid for row in view.subtree(xids.REGISTRY, types)] if types else []
    return sorted({*link.scope.groups, *(xid for xid in map(xids.stream, here) if link.scope.has(xid))})


def _moment(remote: Remote, query: dict[str, str]) -> Moment:
    found = remote.ask("GET", "/-/log/head", params=query).json()
    return Moment(found["position"], found["state"], found.get("time", ""))


def _own(hashes: Hashes, root: str) -> Side:
    keys = keys_of(root)

    def ask(query: Query) -> dict[str, Any]:
        low = xids.tree_key(query["from"][0]) if "from" in query else keys.low
        high = f"{xids.tree_key(query['to'][0])}!" if "to" in query else keys.high
        asked = Keys(low, high)
        if "parts" in query:
            parts = hashes.cut(asked, int(query["parts"][0]))
        else:
            parts = hashes.split(asked, [xids.tree_key(place) for place in query["at"]])
        return {"parts": list(map(members, parts))}

    return ask


def _other(remote: Remote, root: str, position: int) -> Side:
    def ask(query: Query) -> dict[str, Any]:
        path, at = f"/-/hash{quote(root)}", str(position)
        found: dict[str, Any] = remote.ask("GET", path, params={**query, "asof": at}).json()
        return found

    return ask
