"""Caches which members of large collections lack an attribute, and updates the result from the log.

These members come first in the attribute's sort order, and only a scan of all members shows that there are none. The
process caches each result, and later reads only what has changed since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, NamedTuple

from annals.projections.database.drivers import Database
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.entities.changed_rows import changed_keys
from annals.projections.entities.id_keys import id_keys_of_type
from annals.projections.log.positions import find_position

#: The number of cached queries, and of cached members of each.
CACHE_SIZE: Final = 256
MAX_KEYS: Final = 1000
#: After this number of events, the query runs again in full.
MAX_NEW_EVENTS: Final = 20_000

IdKeys = frozenset[str]


class MissingAttributeQuery(NamedTuple):
    """Members of one collection (by their type and the bounds of their id keys) and the path of an attribute."""

    type: str
    path: str
    low: str
    high: str


class _CachedKeys(NamedTuple):
    position: int
    keys: IdKeys | None


class MissingAttributeCache:
    """The cache of one process. Thread-safe."""

    def __init__(self) -> None:
        self._entries: OrderedDict[MissingAttributeQuery, _CachedKeys] = OrderedDict()
        self._lock = Lock()

    def members_without(
        self,
        db: Database,
        query: MissingAttributeQuery,
        find_all: Callable[[], IdKeys | None],
        find_among: Callable[[Sequence[str]], IdKeys],
    ) -> list[str] | None:
        """Id keys of the members without the attribute, in order; None if they are too many to cache.

        db: sees one snapshot. find_all: finds them, None for more than `MAX_KEYS`. find_among: which of some keys lack
        it.
        """
        position = find_position(db, INDEX_NAME) or 0
        with self._lock:
            cached = self._entries.get(query)
        if cached is not None and cached.position == position:
            keys = cached.keys
        elif cached is None or cached.keys is None or not 0 <= position - cached.position <= MAX_NEW_EVENTS:
            keys = find_all()
        else:
            type_keys = id_keys_of_type(changed_keys(db, cached.position, position), query.type)
            changed = [key for key in type_keys if query.low < key < query.high]
            keys = (cached.keys - frozenset(changed)) | (find_among(changed) if changed else frozenset())
        if keys is not None and len(keys) > MAX_KEYS:
            keys = None
        self._remember(query, _CachedKeys(position, keys))
        return None if keys is None else sorted(keys)

    def _remember(self, query: MissingAttributeQuery, cached_keys: _CachedKeys) -> None:
        with self._lock:
            previous = self._entries.get(query)
            if previous is None or previous.position <= cached_keys.position:
                self._entries[query] = cached_keys
            self._entries.move_to_end(query)
            while len(self._entries) > CACHE_SIZE:
                self._entries.popitem(last=False)
