"""The local names of another registry's objects (LEG-903, LEG-907)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from annals.domain.compat.ids import to_legacy_id, to_registry_id
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids

RENAME: Final = "rename"
#: Hexadecimal digits of the authority's hash in a name that avoids a conflict.
_DIGITS: Final = 8


def local_xids(link: Link, collection: str, id: str, authority: str) -> list[str]:
    """The xids that an object may have in this registry, preferred first. id: decoded. Raises: ValueError."""
    return [f"{collection}/{to_registry_id(name)}" for name in candidate_ids(link, id, authority)]


def local_group_xids(link: Link, xid: str, base: str) -> list[str]:
    """The same for a Group. xid: in the other registry, whose base URL serves as the authority."""
    local_xid = link.names.get(xid, xid)
    return local_xids(link, f"/{xids.segments(xid)[0]}", to_legacy_id(xids.entity_id(local_xid)), base)


def candidate_ids(link: Link, id: str, authority: str) -> list[str]:
    """The names that an object may have: its own first, then one for when that is taken."""
    marked_id = f"{id}.{sha256(authority.encode()).hexdigest()[:_DIGITS]}"
    return [id, marked_id] if link.conflicts == RENAME else [id]
