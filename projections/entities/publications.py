"""Reads the table `published`: Versions that are retained after pruning, or that have a URI of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.mapper import EventMapper
from annals.domain.compat.legacy_apis import LegacyApi, version_number
from annals.domain.compat.publications import Publication, PublishedVersion
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.database import drivers
from annals.projections.database.drivers import Database, Values
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, index_key, stored_row

_PUBLICATION_COLUMNS: Final = ", ".join(f"p.{name}" for name in Publication._fields)
_ENTITY_COLUMNS: Final = ", ".join(f"h.{name}" for name in ROW_COLUMNS)
_SELECT_PUBLICATIONS: Final = f"SELECT {_PUBLICATION_COLUMNS} FROM published p WHERE "
_SELECT_ROW: Final = f"SELECT {_ENTITY_COLUMNS} FROM entity_history h WHERE h.tree_key = ? AND h.since = ?"
_SELECT_WITH_ROWS: Final = (
    f"SELECT {_PUBLICATION_COLUMNS}, {_ENTITY_COLUMNS} FROM published p"
    " JOIN entity_history h ON h.tree_key = p.tree_key AND h.since = p.since WHERE "
)
_IN_RANGE: Final = "p.tree_key >= ? AND p.tree_key < ?"
_WITH_DOCUMENT: Final = "h.tree_key >= ? AND h.tree_key < ? AND h.document = ?"
#: The live and the retained Versions with a document. Both look through one Resource's rows without decoding them.
_LIVE_WITH_DOCUMENT: Final = f"SELECT {_ENTITY_COLUMNS} FROM entity h WHERE {_WITH_DOCUMENT}"
_RETAINED_WITH_DOCUMENT: Final = (
    f"SELECT p.number, {_ENTITY_COLUMNS} FROM entity_history h CROSS JOIN published p WHERE {_WITH_DOCUMENT}"
    " AND p.tree_key = h.tree_key AND p.since = h.since AND p.pruned IS NOT NULL AND p.gone IS NULL"
)


def retained_publications(db: Database, table: str, keys: Collection[str]) -> dict[str, Publication]:
    """The publications of the retained Versions among some streams, by tree key."""
    if not keys:
        return {}
    rows = db.all(
        f"SELECT {_PUBLICATION_COLUMNS} FROM {table} p WHERE p.pruned IS NOT NULL AND p.gone IS NULL AND"
        f" {db.in_list('p.tree_key')}",
        [db.list_parameter(keys)],
    )
    return {xids.tree_key(publication.xid): publication for publication in map(Publication._make, rows)}


class StoredPublications:
    """Publications as of a moment, and the rows of those pruned by then. position: of the moment; None for now."""

    def __init__(self, db: Database, position: int | None = None) -> None:
        self._db = db
        self._position = position

    def rows(self, xid: str) -> list[tuple[Publication, EntityRow]]:
        """The retained Versions of a Resource with their last rows, by number."""
        where = f"{_IN_RANGE} AND {self._pruned_condition} ORDER BY p.number"
        value_rows = self._db.all(_SELECT_WITH_ROWS + where, (*_key_range(xid), *self._position_parameters))
        publication_width = len(Publication._fields)
        return [
            (Publication._make(row_values[:publication_width]), stored_row(row_values[publication_width:]))
            for row_values in value_rows
        ]

    def numbers(self, xid: str) -> list[int]:
        """The numbers of the retained Versions of a Resource, ascending."""
        return [number for _, number in self._xids_and_numbers(xid)]

    def row(self, xid: str, number: int) -> EntityRow | None:
        """The last row of a Resource's retained Version with a number."""
        where = f"{_IN_RANGE} AND {self._pruned_condition} AND p.number = ?"
        values = self._db.one(_SELECT_WITH_ROWS + where, (*_key_range(xid), *self._position_parameters, number))
        return stored_row(values[len(Publication._fields) :]) if values else None

    def by_uri(self, family: LegacyApi, uri: str) -> tuple[Publication, EntityRow | None] | None:
        """The Version with a URI of its own, which must be normalised, and its last row if it is retained."""
        if "\0" in uri:  # PostgreSQL does not even accept the question
            return None
        values = self._db.one(
            _SELECT_PUBLICATIONS + f"p.uri = ? AND {_IN_RANGE} AND {self._live_condition}",
            (index_key(uri), *_family_range(family), *self._live_parameters),
        )
        if values is None:
            return None
        publication = Publication._make(values)
        is_pruned = publication.pruned is not None and (self._position is None or publication.pruned <= self._position)
        pruned_row = (
            self._db.one(_SELECT_ROW, (xids.tree_key(publication.xid), publication.since)) if is_pruned else None
        )
        return publication, stored_row(pruned_row) if pruned_row else None

    def _xids_and_numbers(self, xid: str) -> list[Any]:
        where = (
            f"SELECT p.xid, p.number FROM published p WHERE {_IN_RANGE} AND {self._pruned_condition} ORDER BY p.number"
        )
        return self._db.all(where, (*_key_range(xid), *self._position_parameters))

    @property
    def _pruned_condition(self) -> str:
        return (
            "p.pruned IS NOT NULL AND p.gone IS NULL"
            if self._position is None
            else f"p.pruned <= ? AND {_NOT_GONE_YET}"
        )

    @property
    def _position_parameters(self) -> Values:
        return () if self._position is None else (self._position, self._position)

    @property
    def _live_condition(self) -> str:
        return "p.gone IS NULL" if self._position is None else f"p.born <= ? AND {_NOT_GONE_YET}"

    _live_parameters = _position_parameters


_NOT_GONE_YET: Final = "(p.gone IS NULL OR p.gone > ?)"


class SqlPublications:
    """`annals.domain.compat.publications.Publications` on the connection of a write transaction."""

    def __init__(self, connection: Connection, mapper: EventMapper) -> None:
        self._db = drivers.database_of(connection)

    def retained_versions(self, xid: str) -> Sequence[Publication]:
        where = f"{_IN_RANGE} AND p.pruned IS NOT NULL AND p.gone IS NULL ORDER BY p.tree_key"
        return [Publication._make(values) for values in self._db.all(_SELECT_PUBLICATIONS + where, _key_range(xid))]

    def by_uri(self, family: LegacyApi, uri: str) -> Publication | None:
        return self._find_by("uri", family, uri)

    def by_id(self, family: LegacyApi, id: str) -> Publication | None:
        return self._find_by("id", family, id)

    def by_document(self, definition: str, sha256: str, *, has_retained: bool) -> Sequence[PublishedVersion]:
        parameters = (*xids.subtree(f"{definition}/versions"), sha256)
        live = (_entity_of_row(stored_row(values)) for values in self._db.all(_LIVE_WITH_DOCUMENT, parameters))
        retained = self._db.all(_RETAINED_WITH_DOCUMENT, parameters) if has_retained else ()
        return [
            *(PublishedVersion(version_number(entity.id, entity.private), entity) for entity in live),
            *(PublishedVersion(number, _entity_of_row(stored_row(values))) for number, *values in retained),
        ]

    def pruned_entity(self, publication: Publication) -> Entity:
        values = self._db.one(_SELECT_ROW, (xids.tree_key(publication.xid), publication.since))
        if values is None:
            raise LookupError(f"the image of {publication.xid} at {publication.since} is missing")
        return _entity_of_row(stored_row(values))

    def _find_by(self, name: str, family: LegacyApi, value: str) -> Publication | None:
        where = f"p.{name} = ? AND {_IN_RANGE} AND p.gone IS NULL"
        values = self._db.one(_SELECT_PUBLICATIONS + where, (index_key(value), *_family_range(family)))
        return Publication._make(values) if values else None


def _entity_of_row(row: EntityRow) -> Entity:
    attributes, private = loads_trusted(row.attributes), loads_trusted(row.private)
    return Entity(row.xid, row.type, row.epoch, attributes, private, position=row.since, born=row.born)


def _key_range(xid: str) -> tuple[str, str]:
    """The key range at and below an xid."""
    return xids.tree_key(xid), xids.subtree(xid)[1]


def _family_range(family: LegacyApi) -> tuple[str, str]:
    return xids.subtree(f"/{family.groups}")
