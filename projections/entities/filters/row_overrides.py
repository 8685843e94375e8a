"""Entities that read differently from the index or from their current rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping
from typing import Final

from annals.domain.values.batched import batched
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import ALWAYS, SqlFragment, in_list
from annals.projections.entities.id_keys import id_key, id_keys_of_type
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.xref import XrefTargets

#: The number of Resources with an xref whose targets are read together.
_BATCH_RESOURCES: Final = 200
NO_IMAGES: Final[Mapping[str, EntityRow | None]] = {}


class RowOverrides:
    """Entities that read differently from the index or from their current rows.

    The index does not have their last events yet, a past moment is read, or they have an xref. What an xref shows is
    read when it is asked for.

    targets: what xrefs show at that moment. images: by tree key; None for a stream without a live entity then.
    pointers: the rows of Resources with an xref. is_newer_only: the images are exactly those of the entities whose last
    events the index does not have.
    """

    def __init__(
        self,
        targets: XrefTargets,
        images: Mapping[str, EntityRow | None] = NO_IMAGES,
        pointers: Iterable[EntityRow] = (),
        *,
        is_newer_only: bool = False,
    ) -> None:
        self._targets = targets
        self._pointers = {row.tree_key: row for row in pointers}
        self._rows = dict(sorted({**images, **self._pointers}.items()))
        self._sorted_keys = list(self._rows)
        self._resources: dict[str, EntityRow] = {}
        self.is_newer_only = is_newer_only

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def keys(self) -> KeysView[str]:
        """The tree keys of the images, without those of the Versions that xrefs show: no rows are stored for them."""
        return self._rows.keys()

    def keys_of_type(self, type: str) -> list[str]:
        """The id keys of the images that are entities of a type."""
        own_keys = [row.id_key for row in self._rows.values() if row is not None and row.type == type]
        return own_keys + [
            id_key(key)
            for pointer in self._pointers.values()
            if _version_type(pointer) == type
            for key in self._targets.version_keys(pointer)
        ]

    def changed_keys_of_type(self, type: str) -> list[str]:
        """The id keys of all streams of a type in `keys`, also of those without an entity."""
        return id_keys_of_type(self._rows, type)

    def rows_of_type(self, type: str) -> Iterator[EntityRow]:
        """The images of a type, in tree order."""
        return self.rows({type}, "", '"')

    def rows(self, types: Collection[str], low: str, high: str) -> Iterator[EntityRow]:
        """The images of some types between two tree keys, in tree order."""
        resource_key = "!".join(low.split("!")[:5])  # a Resource above the range may show Versions in it
        keys = self._sorted_keys[bisect_left(self._sorted_keys, resource_key) : bisect_left(self._sorted_keys, high)]
        for chunk in batched(keys, _BATCH_RESOURCES):
            self._read_resources(key for key in chunk if low < key and self._is_of_types(key, types))
            for key in chunk:
                yield from (row for row in self._shown_rows(key, types) if low < row.tree_key < high)

    def rows_by_key(self, keys: Collection[str]) -> dict[str, EntityRow]:
        """The images with some tree keys that are entities, in the order of the keys."""
        self._read_resources(keys)
        images = ((key, self._resources.get(key) or self._rows.get(key) or self._shown_version(key)) for key in keys)
        return {key: image for key, image in images if image is not None}

    def _is_of_types(self, key: str, types: Collection[str]) -> bool:
        row = self._rows[key]
        return row is not None and row.type in types

    def _shown_rows(self, key: str, types: Collection[str]) -> Iterator[EntityRow]:
        """The image with a key, and the Versions that it shows, if they are of some types."""
        if self._is_of_types(key, types) and (row := self._resources.get(key) or self._rows[key]):
            yield row
        pointer = self._pointers.get(key)
        if pointer and _version_type(pointer) in types:
            yield from self._targets.versions(pointer)

    def _shown_version(self, key: str) -> EntityRow | None:
        pointer = self._pointers.get("!".join(key.split("!")[:5]))
        return self._targets.version(pointer, key) if pointer else None

    def _read_resources(self, keys: Iterable[str]) -> None:
        """Reads what those pointers show that have some keys."""
        unread = [self._pointers[key] for key in keys if key in self._pointers and key not in self._resources]
        if unread:
            self._resources |= {row.tree_key: row for row in self._targets.resources(unread)}


def _version_type(pointer: EntityRow) -> str:
    return f"{pointer.type}.versions"


def unchanged_condition(db: Database, overrides: RowOverrides | None, column: str, type: str) -> SqlFragment:
    """A condition on a column of id keys of a type: their entities have not changed since the moment."""
    if overrides is None:
        return ALWAYS
    return in_list(db, column, overrides.changed_keys_of_type(type)).wrap("NOT ({})")
