"""Streams collections of Resources and Versions that are returned as stored, because no member has an xref.

One statement both checks this and returns all members.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, NamedTuple

from annals.commands.store.damage import UnreadableRow
from annals.domain.values import xid as xids
from annals.projections.database.connections import ReadConnection
from annals.projections.entities.id_keys import id_key_bound
from annals.projections.entities.index_paths import PATH_NUMBER
from annals.projections.entities.rows import COMPRESSED_ATTRIBUTES, decompress_all_attributes
from annals.projections.entities.xref import XREF_PATH
from annals.projections.log.positions import checked_position

_IN_COLLECTION: Final = "id_key > ? AND id_key < ?"
#: The position of the last event of the entity at a tree key.
ENTITY_SINCE: Final = "(SELECT since FROM entity WHERE tree_key = '{}')"
_POSITION: Final = "SELECT max(position) FROM projection WHERE name = 'entities'"
#: Rows that are decompressed together.
_BLOCK_SIZE: Final = 256
_COLUMNS: Final = f"{COMPRESSED_ATTRIBUTES}, meta"
_FROM_MEMBERS: Final = (
    f"FROM entity WHERE type = ? AND {_IN_COLLECTION}"
    f" AND {ENTITY_SINCE.format(xids.tree_key(xids.MODEL))} = ? AND"
    f" {ENTITY_SINCE.format(xids.tree_key(xids.CAPABILITIES))} = ?"
    " AND EXISTS (SELECT 1 FROM entity WHERE tree_key = ? AND xid = ?)"
    f" AND NOT EXISTS (SELECT 1 FROM attribute WHERE path = {PATH_NUMBER} AND {_IN_COLLECTION}) ORDER BY id_key"
)


class CollectionStream(NamedTuple):
    """The members of a collection at one log position.

    texts: rows that start with a member's attributes and `meta`, in tree order.
    """

    position: int
    texts: Iterator[Any]


@contextmanager
def stream_collection(
    reader: ReadConnection, collection: str, definitions: tuple[int, int]
) -> Iterator[CollectionStream | None]:
    """All members of a collection, streamed; each costs a quarter of its whole row.

    definitions: positions of the model and the capabilities that the caller knows. None if these have changed, if the
    collection has no members or no owner of exactly this name, or if one of its members has an xref.
    Run no other query on the connection in the block.
    """
    owner = xids.parent(f"{collection}/-") or xids.REGISTRY
    type = xids.type_of(collection)
    key_range = [id_key_bound(type, bound) for bound in xids.subtree(collection)]
    values = (type, *key_range, *definitions, xids.tree_key(owner), owner, type, XREF_PATH, *key_range)
    with reader.stream_at(_POSITION, _COLUMNS, _FROM_MEMBERS, values) as (position, texts):
        yield None if position is None else CollectionStream(checked_position(position), _checked_texts(texts))


def _checked_texts(rows: Iterator[Any]) -> Iterator[tuple[str, int]]:
    """The texts and `meta` of rows. Raises: UnreadableRow for values of other types, which SQLite can store as well."""
    while block := list(islice(rows, _BLOCK_SIZE)):
        metas = [row[1] for row in block]
        for meta in metas:
            if type(meta) is not int:
                raise UnreadableRow(f"a row of the read model cannot be read: {meta!r:.100}")
        yield from zip(decompress_all_attributes([row[0] for row in block]), metas, strict=True)
