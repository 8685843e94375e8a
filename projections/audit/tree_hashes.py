"""Hashes of parts of the registry's tree as of a position, by which two registries find their differences.

The hash of a part is a sum like the state hash (`annals.commands.store.hashes`), over the entities in a range of tree
keys. The hashes of adjacent parts therefore add up, and the hash of the whole tree is the state hash. `head` has the
hash of each entity that has not changed since the position; other hashes are computed from the images at the position.
The cost is that of the range and of the changes in it since the position: the log is not read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from annals.commands.store import hashes
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.mapper import assemble_after_image, require_bytes
from annals.domain.values import xid as xids
from annals.domain.values.batched import batched
from annals.projections.audit.trail import BATCH
from annals.projections.audit.visible_entities import Condition, VisibleEntities, keys_condition
from annals.projections.database.drivers import Database
from annals.projections.log.reader import Log

_IN_TREE: Final = "".join(
    " AND NOT (h.tree_key >= '{}' AND h.tree_key < '{}')".format(*xids.subtree(start[:-1]))
    for start in xids.OUTSIDE_TREE
)
#: The first condition is about the keys, in the column `h.tree_key`.
_IN_RANGE: Final = f"{{}}{_IN_TREE}"
_HASH_COLUMNS: Final = "SELECT h.tree_key, h.xid, h.hash"
# Without explicit types, PostgreSQL would sort both halves of a union together instead of merging them.
_NULL_COLUMNS: Final = ", ".join(f"CAST(NULL AS {type})" for type in ("text", "bigint", "bytea", "text"))
_LIVE_HEADS: Final = f" FROM head h WHERE {_IN_RANGE} AND h.live"
# The past image is looked up separately, because an entity that changes with its descendants has many other images.
_REPLACED_ROWS: Final = (
    " FROM head h CROSS JOIN entity_history e"
    f" WHERE {_IN_RANGE} AND h.position > ? AND e.tree_key = h.tree_key AND e.since ="
    " (SELECT max(s.since) FROM entity_history s WHERE s.tree_key = h.tree_key AND s.since <= ?) AND e.until > ?"
)
CURRENT_HASHES: Final = f"{_HASH_COLUMNS}{_LIVE_HEADS} ORDER BY h.tree_key"
PAST_HASHES: Final = (
    f"{_HASH_COLUMNS}, {_NULL_COLUMNS}{_LIVE_HEADS} AND h.position <= ? UNION ALL"
    " SELECT h.tree_key, e.xid, CAST(NULL AS bytea), e.type, e.epoch, e.compressed_attributes,"
    f" e.private{_REPLACED_ROWS} ORDER BY 1"
)
COUNT_CURRENT: Final = f"SELECT count(*){_LIVE_HEADS}"
# the parameters of THEN
COUNT_PAST: Final = f"SELECT (SELECT count(*){_LIVE_HEADS} AND h.position <= ?) + (SELECT count(*){_REPLACED_ROWS})"


class KeyRange(NamedTuple):
    """Tree keys from one (inclusive) to another (exclusive)."""

    low: str
    high: str


@dataclass(frozen=True, slots=True)
class TreePart:
    """The live entities in a range. first, last: the outermost xids in tree order, None if the range is empty."""

    first: str | None
    last: str | None
    count: int
    hash: bytes


#: A part without live entities.
EMPTY_PART: Final = TreePart(None, None, 0, hashes.EMPTY_HASH)


class _HashedEntity(NamedTuple):
    key: str
    xid: str
    hash: bytes


def part_members(part: TreePart) -> dict[str, str | int]:
    """A part as responses show it: `from` and `to` are its first and last entity, and absent if it is empty."""
    outer_xids = {} if part.first is None or part.last is None else {"from": part.first, "to": part.last}
    return {**outer_xids, "count": part.count, "hash": part.hash.hex()}


def key_range_of(xid: str) -> KeyRange:
    """The range of an entity or collection and everything below it."""
    return KeyRange(xids.tree_key(xid), xids.subtree(xid)[1])


class TreeHashes:
    """Counts and hashes of the entities that are live at a log position, without those outside the tree.

    visible: which of them count; None for all.
    """

    def __init__(self, db: Database, position: int, visible: VisibleEntities | None = None) -> None:
        self._db = db
        self._visible = visible
        self._position = position
        self._is_current = Log(db).head().last == position

    def split_evenly(self, keys: KeyRange, parts: int) -> list[TreePart]:
        """A range split into at most `parts` parts of nearly equal size, none of them empty."""
        count = self._db.one(*self._query(COUNT_CURRENT if self._is_current else COUNT_PAST, keys))[0]
        size, remainder = divmod(count, parts)
        entities = self._entities(keys)
        sizes = (size + (number < remainder) for number in range(min(parts, count)))
        return [_sum_hashes(islice(entities, size)) for size in sizes]

    def split_at(self, keys: KeyRange, split_keys: Sequence[str]) -> list[TreePart]:
        """A range split at the given tree keys, into one more part than keys; each part begins with its key.

        split_keys: in order, inside the range.
        """
        groups = groupby(self._entities(keys), lambda entity: bisect_right(split_keys, entity.key))
        parts = {number: _sum_hashes(group) for number, group in groups}
        return [parts.get(number, EMPTY_PART) for number in range(len(split_keys) + 1)]

    def _entities(self, keys: KeyRange) -> Iterator[_HashedEntity]:
        """The entities in tree order, streamed."""
        rows = self._db.stream(*self._query(CURRENT_HASHES if self._is_current else PAST_HASHES, keys))
        return map(_hashed_entity, rows)

    def _query(self, statement: str, keys: KeyRange) -> Condition:
        """A statement about a range, and its values."""
        condition, values = keys_condition(self._visible, self._db, "h.tree_key", *keys)
        position = self._position
        past_values = (*values, position, *values, position, position, position)
        return Condition(statement.replace("{}", condition), values if self._is_current else past_values)


def merge_parts(parts: Sequence[TreePart]) -> TreePart:
    """The part that consists of several adjacent parts."""
    nonempty_parts = [part for part in parts if part.count]
    if not nonempty_parts:
        return EMPTY_PART
    hash = hashes.update_state_hash(hashes.EMPTY_HASH, (), (part.hash for part in nonempty_parts))
    return TreePart(nonempty_parts[0].first, nonempty_parts[-1].last, sum(part.count for part in nonempty_parts), hash)


def _hashed_entity(row: Sequence[Any]) -> _HashedEntity:
    key, xid, hash, *image = row
    return _HashedEntity(key, xid, require_bytes(hash) if hash is not None else _hash_image(xid, *image))


def _hash_image(xid: str, type: str, epoch: int, attributes: Any, private: str) -> bytes:
    image = assemble_after_image(xid, type, epoch, decompress_state(attributes), private.encode())
    return hashes.entity_hash(image)


def _sum_hashes(entities: Iterable[_HashedEntity]) -> TreePart:
    total = EMPTY_PART
    for batch in batched(entities, BATCH):
        hash = hashes.update_state_hash(total.hash, (), (entity.hash for entity in batch))
        total = TreePart(total.first or batch[0].xid, batch[-1].xid, total.count + len(batch), hash)
    return total
