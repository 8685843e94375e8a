"""What a link has written to another registry; it changes and deletes only that (LEG-909)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from annals.domain.values import xid as xids
from annals.projections.replication import tables
from annals.projections.replication.link_state import LinkStates

_SELECT: Final = "SELECT key, digest, own, place FROM replication_sent WHERE link = ?"
_SELECT_ONE: Final = f"{_SELECT} AND key = ?"
_SELECT_BELOW: Final = f"{_SELECT} AND key >= ? AND key < ?"
#: Between path and identity in the column `place`. No path contains it; earlier releases wrote the path alone.
_SEPARATOR: Final = "#"


class SentObject(NamedTuple):
    """A Group or a Version that was written to the other registry.

    key: tree key of the local entity.
    digest: of what was written.
    is_own: whether this link created it.
    remote_path: its remote path. For a Version whose write is not confirmed: the path of its lookup by URI, or empty.
    identity: what another object at the same path does not have: the URI of a Version, the remote time of creation of a
    Group. Empty if it is not known.
    """

    key: str
    digest: str
    is_own: bool
    remote_path: str
    identity: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether it is known to exist at its place."""
        return bool(self.remote_path) and "?" not in self.remote_path


class SentObjects:
    """The written objects of one link. Its methods raise one of `driver_errors()`."""

    def __init__(self, link: str, states: LinkStates) -> None:
        self._link = link
        self._states = states

    def get(self, xid: str) -> SentObject | None:
        """The written object of one entity."""
        with self._states.reading() as db:
            row = db.one(_SELECT_ONE, (self._link, xids.tree_key(xid)))
        return _sent_object(row) if row else None

    def objects_below(self, xid: str) -> Mapping[str, SentObject]:
        """The written objects below an entity or collection, by key."""
        low, high = xids.subtree(xid)
        with self._states.reading() as db:
            return {row[0]: _sent_object(row) for row in db.all(_SELECT_BELOW, (self._link, low, high))}

    def save(self, copy: SentObject) -> None:
        """Stores a written object."""
        with self._states.writing() as db:
            db.upsert(tables.sent, [(self._link, copy.key, copy.digest, int(copy.is_own), _place(copy))])

    def delete(self, key: str) -> None:
        """Deletes the record of a written object."""
        with self._states.writing() as db:
            db.delete(tables.sent, [(self._link, key)])


def _sent_object(row: tuple[str, str, int, str]) -> SentObject:
    remote_path, _, identity = str(row[3]).partition(_SEPARATOR)
    return SentObject(row[0], row[1], bool(row[2]), remote_path, identity)


def _place(copy: SentObject) -> str:
    return copy.remote_path + (f"{_SEPARATOR}{copy.identity}" if copy.identity else "")
