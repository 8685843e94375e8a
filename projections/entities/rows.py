"""What the read model holds about an entity: one row, a function of one event and its position."""

from __future__ import annotations

from typing import NamedTuple

from domain import xid as xids
from domain.events import BORN, EntityEvent
from domain.jsontext import dumps, loads_own


class Row(NamedTuple):
    """One entity as of one event.

    tree_key: `xid.tree_key`; type, parent, id, epoch: see Entity. createdat, modifiedat: RFC 3339 in UTC, empty where
    the entity has none of its own (a Resource's are its meta's). attributes, private: JSON text in serialization order.
    document: SHA-256 in hex of a Version's document, and of the default Version's for a Resource.
    since: position of the event.
    """

    tree_key: str
    xid: str
    type: str
    parent: str | None
    id: str
    epoch: int
    createdat: str
    modifiedat: str
    attributes: str
    private: str
    document: str | None
    since: int

    @property
    def born(self) -> int | None:
        """Position of the event that created the entity; None where the log does not say."""
        found: int | None = loads_own(self.private).get(BORN)
        return found


def row(event: EntityEvent, position: int) -> Row:
    """The read-model row of an event that leaves an entity alive."""
    own = event.attributes.get("meta", event.attributes) if event.type.count(".") == 1 else event.attributes
    return Row(
        tree_key=xids.tree_key(event.xid),
        xid=event.xid,
        type=event.type,
        parent=xids.parent(event.xid),
        id=xids.entity_id(event.xid),
        epoch=event.epoch,
        createdat=own.get("createdat", ""),
        modifiedat=own.get("modifiedat", ""),
        attributes=dumps(event.attributes).decode(),
        private=dumps(event.private).decode(),
        document=event.private.get("document"),
        since=position,
    )
