"""The rows of the read model, each a function of one event, independent of the database.

Programs see the attributes of an entity as JSON text. The database has them compressed, like the states in the log:
`row_values` and `stored_row` convert whole rows, `compress_attributes` and `decompress_attributes` the column alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from annals.commands.store.compression.state_compression import compress_state, decompress_state, decompress_states
from annals.commands.store.damage import UnreadableRow
from annals.domain.compat.publications import Publication
from annals.domain.registry.events import EntityEvent
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps, loads_trusted
from annals.projections.entities.id_keys import id_key


class EntityTimes(NamedTuple):
    """An entity's own times, a Resource's from its meta: RFC 3339 in UTC, empty where it has none."""

    createdat: str
    modifiedat: str


class EntityRow(NamedTuple):
    """One entity as of one event.

    tree_key: `xid.tree_key`; id_key: `id_keys.id_key`; type, epoch: see Entity. attributes, private: JSON text in
    serialization order.
    document: SHA-256 in hex of a Version's document, and of the default Version's for a Resource.
    since: position of the event. born: position of the event that created the entity; None if the log does not say.
    meta: the offset in `attributes` of a Resource's `meta` member, including its comma. It is 0 for other entities and
    for Resources with an xref, whose text needs more changes than added URLs.
    """

    tree_key: str
    xid: str
    type: str
    id_key: str
    epoch: int
    attributes: str
    private: str
    document: str | None
    since: int
    born: int | None
    meta: int

    @property
    def id(self) -> str:
        """The last segment of the xid."""
        return xids.entity_id(self.xid)

    @property
    def parent(self) -> str | None:
        """The xid of the owner; None for the registry."""
        return xids.parent(self.xid)

    @property
    def times(self) -> EntityTimes:
        """The entity's own times. Cost: reads the attributes."""
        return own_times(self.type, loads_trusted(self.attributes))


def entity_row(event: EntityEvent, position: int) -> EntityRow:
    """The read-model row of an event, which must not be a deletion."""
    attributes, tree_key = dumps(event.attributes).decode(), xids.tree_key(event.xid)
    return EntityRow(
        tree_key=tree_key,
        xid=event.xid,
        type=event.type,
        id_key=id_key(tree_key),
        epoch=event.epoch,
        attributes=attributes,
        private=dumps(event.private).decode(),
        document=event.private.get("document"),
        since=position,
        born=event.creation_position(position),
        meta=_meta_offset(event, attributes),
    )


def own_times(type: str, attributes: Mapping[str, Any]) -> EntityTimes:
    """The own times of an entity with some attributes."""
    timed_attributes = attributes.get("meta", attributes) if type.count(".") == 1 else attributes
    return EntityTimes(timed_attributes.get("createdat", ""), timed_attributes.get("modifiedat", ""))


#: The column with the attributes, see `commands.store.compression.state_compression`.
COMPRESSED_ATTRIBUTES: Final = "compressed_attributes"
_ATTRIBUTES_INDEX: Final = EntityRow._fields.index("attributes")
#: The columns of a row, in their order.
ROW_COLUMNS: Final = tuple(COMPRESSED_ATTRIBUTES if name == "attributes" else name for name in EntityRow._fields)

_TEXT_TYPES: Final = (str,)
_NUMBER_TYPES: Final = (int,)
#: The possible types of each column.
_COLUMN_TYPES: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(ROW_COLUMNS, _TEXT_TYPES),
    COMPRESSED_ATTRIBUTES: (bytes,),
    **dict.fromkeys(("epoch", "since", "meta"), _NUMBER_TYPES),
    "document": (str, type(None)),
    "born": (int, type(None)),
}
_VALID_TYPES: Final = frozenset(itertools.product(*_COLUMN_TYPES.values()))


def row_values(row: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a row for the database. row: an `EntityRow`, or the same followed by other columns."""
    attributes = compress_attributes(row[_ATTRIBUTES_INDEX])
    return (*row[:_ATTRIBUTES_INDEX], attributes, *row[_ATTRIBUTES_INDEX + 1 :])


def stored_row(values: Sequence[Any]) -> EntityRow:
    """The row with some values from the database, which must be all `ROW_COLUMNS`.

    Raises: UnreadableRow for a value of another type than its column's, which SQLite can store as well.
    """
    if tuple(map(type, values)) not in _VALID_TYPES:
        raise UnreadableRow(f"a row of the read model cannot be read: {values[:3]!r}")
    row = list(values)
    row[_ATTRIBUTES_INDEX] = decompress_attributes(row[_ATTRIBUTES_INDEX])
    return EntityRow._make(row)


def compress_attributes(text: str) -> bytes:
    """Attributes as the database has them. Cost: 3 microseconds."""
    return compress_state(text.encode())


def decompress_attributes(stored: Any) -> str:
    """The attributes in a value of their column. Cost: 1 microsecond. Raises: UnreadableRow."""
    try:
        text = decompress_state(stored).decode()
    except ValueError as error:
        raise _unreadable(error) from error
    if text[:1] != "{":
        raise _no_object(text)
    return text


def decompress_all_attributes(stored: list[Any]) -> list[str]:
    """The attributes in many values of their column. Raises: UnreadableRow."""
    try:
        texts = [state.decode() for state in decompress_states(stored)]
    except ValueError as error:
        raise _unreadable(error) from error
    for text in texts:
        if text[:1] != "{":
            raise _no_object(text)
    return texts


def _unreadable(error: ValueError) -> UnreadableRow:
    return UnreadableRow(f"attributes of the read model cannot be read: {error}")


def _no_object(text: str) -> UnreadableRow:
    return UnreadableRow(f"attributes of the read model are no JSON object: {text[:100]!r}")


def may_contain(values: Sequence[Any], part: str) -> bool:
    """Whether the attributes in a row from the database may contain a text, ignoring case.

    part: of characters that both JSON and case folding leave unchanged. Raises: UnreadableRow.
    """
    text = decompress_attributes(values[_ATTRIBUTES_INDEX])
    return part in text.lower() or not text.isascii()  # other characters may fold to ASCII


#: The columns of `published`, in their order.
PUBLICATION_COLUMNS: Final = ("tree_key", "born", "xid", "number", "id", "uri", "since", "pruned", "gone")


def publication_row(publication: Publication) -> tuple[Any, ...]:
    """The row of a Version that is retained for the legacy APIs after pruning, or that has a URI of its own."""
    key, id, uri = xids.tree_key(publication.xid), index_key(publication.id), index_key(publication.uri)
    positions = publication.since, publication.pruned, publication.gone
    return (key, publication.born, publication.xid, publication.number, id, uri, *positions)


#: The maximum bytes of a key in a PostgreSQL index, with a margin.
_MAX_KEY_LENGTH: Final = 1000


def index_key(text: str | None) -> str | None:
    """The index form of a text: a text too long for the index is replaced by its hash."""
    is_too_long = text is not None and len(text.encode()) > _MAX_KEY_LENGTH
    return f"sha256:{sha256(text.encode()).hexdigest()}" if text is not None and is_too_long else text


#: The start of a Resource's meta in the text of its attributes.
_META_MEMBER: Final = ',"meta":{'


def _meta_offset(event: EntityEvent, text: str) -> int:
    meta = event.attributes.get("meta") if event.type.count(".") == 1 else None
    if meta is None or "xref" in meta:
        return 0
    offset = text.find(_META_MEMBER)
    if text.find(_META_MEMBER, offset + 1) > 0:
        # The same text also occurs in an earlier attribute or inside `meta`, so the offset is computed from what
        # precedes it.
        preceding_names = itertools.takewhile(lambda name: name != "meta", event.attributes)
        offset = len(dumps({name: event.attributes[name] for name in preceding_names}).decode()) - 1
    return offset
