"""Entities that read differently from the index or from their current rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import ALWAYS, SqlFragment, in_list
from annals.projections.entities.id_keys import id_keys_of_type
from annals.projections.entities.rows import EntityRow


@dataclass(frozen=True, slots=True)
class RowOverrides:
    """Entities that read differently from the index or from their current rows.

    The index does not have their last events yet, a past moment is read, or they have an xref. images: by tree key;
    None for a stream without a live entity at that moment. is_newer_only: the images are exactly those of the entities
    whose last events the index does not have.
    """

    images: Mapping[str, EntityRow | None] = field(default_factory=dict)
    is_newer_only: bool = False

    def keys_of_type(self, type: str) -> list[str]:
        """The id keys of the images that are entities of a type."""
        return [row.id_key for row in self.images.values() if row is not None and row.type == type]

    def changed_keys_of_type(self, type: str) -> list[str]:
        """The id keys of all streams of a type, also of those without an entity."""
        return id_keys_of_type(self.images, type)


def unchanged_condition(db: Database, overrides: RowOverrides | None, column: str, type: str) -> SqlFragment:
    """A condition on a column of id keys of a type: their entities have not changed since the moment."""
    if overrides is None:
        return ALWAYS
    return in_list(db, column, overrides.changed_keys_of_type(type)).wrap("NOT ({})")
