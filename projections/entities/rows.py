"""What the read model holds about an entity: rows, each a function of one event, without the databases they go to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from commands.store.damage import UnreadableRow
from domain.compat.publications import Publication
from domain.registry.events import EntityEvent
from domain.values import xid as xids
from domain.values.json_text import dumps


class EntityRow(NamedTuple):
    """One entity as of one event.

    tree_key: `xid.tree_key`; type, parent, id, epoch: see Entity. createdat, modifiedat: RFC 3339 in UTC, empty where
    the entity has none of its own (a Resource's are its meta's). attributes, private: JSON text in serialization order.
    document: SHA-256 in hex of a Version's document, and of the default Version's for a Resource.
    since: position of the event. born: that of the event which created the entity; None where the log does not say.
    meta: where in `attributes` a Resource's member of that name begins, its comma included; 0 for all else and for what
    stands for another: such texts are not only in need of URLs.
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
    born: int | None
    meta: int


def row(event: EntityEvent, position: int) -> EntityRow:
    """The read-model row of an event that leaves an entity alive."""
    own = event.attributes.get("meta", event.attributes) if event.type.count(".") == 1 else event.attributes
    attributes = dumps(event.attributes).decode()
    return EntityRow(
        tree_key=xids.tree_key(event.xid),
        xid=event.xid,
        type=event.type,
        parent=xids.parent(event.xid),
        id=xids.entity_id(event.xid),
        epoch=event.epoch,
        createdat=own.get("createdat", ""),
        modifiedat=own.get("modifiedat", ""),
        attributes=attributes,
        private=dumps(event.private).decode(),
        document=event.private.get("document"),
        since=position,
        born=event.birth(position),
        meta=_meta(event, attributes),
    )


_TEXT: Final = (str,)
_NUMBER: Final = (int,)
#: What the values of each column can be.
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(EntityRow._fields, _TEXT),
    **dict.fromkeys(("epoch", "since", "meta"), _NUMBER),
    **dict.fromkeys(("parent", "document"), (str, type(None))),
    "born": (int, type(None)),
}
_SOUND: Final = frozenset(itertools.product(*_KINDS.values()))
_ATTRIBUTES: Final = EntityRow._fields.index("attributes")


def stored_row(values: Sequence[Any]) -> EntityRow:
    """The row of some columns, all of them in their order.

    Raises: UnreadableRow for a value that is not of its column's kind, which SQLite keeps as well.
    """
    if tuple(map(type, values)) not in _SOUND or not values[_ATTRIBUTES].startswith("{"):
        raise UnreadableRow(f"a row of the read model cannot be read: {values[:3]!r}")
    return EntityRow._make(values)


#: The columns of `published`, in their order.
PUBLICATION_COLUMNS: Final = ("tree_key", "born", "xid", "number", "id", "uri", "since", "pruned", "gone")


def publication_row(publication: Publication) -> tuple[Any, ...]:
    """The row of a Version that is kept for the older APIs, or that has a URI of its own."""
    key, id, uri = xids.tree_key(publication.xid), index_key(publication.id), index_key(publication.uri)
    ends = publication.since, publication.pruned, publication.gone
    return (key, publication.born, publication.xid, publication.number, id, uri, *ends)


#: What an index of PostgreSQL takes in one key, with room to spare.
_LONGEST: Final = 1000


def index_key(text: str | None) -> str | None:
    """A text as it is indexed: what is longer than an index takes is known by its hash."""
    long = text is not None and len(text.encode()) > _LONGEST
    return f"sha256:{sha256(text.encode()).hexdigest()}" if text is not None and long else text


#: What a Resource's meta begins with in the text of its attributes.
_META: Final = ',"meta":{'


def _meta(event: EntityEvent, text: str) -> int:
    meta = event.attributes.get("meta") if event.type.count(".") == 1 else None
    if meta is None or "xref" in meta:
        return 0
    at = text.find(_META)
    if text.find(_META, at + 1) > 0:
        # An attribute before or a member within it has such a member too, so it is counted how much comes before it.
        before = itertools.takewhile(lambda name: name != "meta", event.attributes)
        at = len(dumps({name: event.attributes[name] for name in before}).decode()) - 1
    return at
