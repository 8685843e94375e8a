"""Resolves Resources with an xref: they show the rows of their targets under their own names.

The row of such a Resource has only its ids and `meta.xref`. Its target is resolved for each response, so it never lags
behind. A target that does not exist, or has an xref itself, shows nothing.
Spec: core 1.0-rc4, "Cross Referencing Resources".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json, dumps, loads
from annals.projections.database.drivers import Database
from annals.projections.entities.changed_rows import rows_as_of
from annals.projections.entities.filters.sql import SqlFragment, and_, between, entities_by_key
from annals.projections.entities.id_keys import id_key, id_key_bound
from annals.projections.entities.index_paths import PATH_NUMBER
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row

#: The `private` of a Version shown through an xref; no stored row has it.
RESOLVED_XREF: Final = '{"pointed":true}'
#: The number of Versions of targets above which they are forgotten before further ones are read.
MAX_KEPT_VERSIONS: Final = 10_000

_COLUMNS: Final = ", ".join(ROW_COLUMNS)
_SELECT_REPLACED: Final = (
    f"SELECT {_COLUMNS} FROM entity_history WHERE type = ? AND id_key > ? AND id_key < ? AND since <= ? AND until > ?"
)
#: The path of an xref in the attribute index.
XREF_PATH: Final = "meta.xref"
_SELECT_XREF_KEYS: Final = f"SELECT DISTINCT a.id_key FROM attribute AS a WHERE a.path = {PATH_NUMBER}"
_SELECT_TREE: Final = f"SELECT {_COLUMNS} FROM entity WHERE tree_key >= ? AND tree_key < ?"
_SELECT_PAST_TREE: Final = (
    f"{_SELECT_TREE} AND since <= ? UNION ALL SELECT {_COLUMNS} FROM entity_history"
    " WHERE tree_key >= ? AND tree_key < ? AND since <= ? AND until > ?"
)


def xref_of(row: EntityRow | None) -> str | None:
    """The xref of a Resource's row; None for any other row."""
    if row is None or row.type.count(".") != 1 or '"xref":' not in row.attributes:
        return None
    xref: str | None = loads(row.attributes)["meta"].get("xref")
    return xref


def find_xrefs(db: Database, types: Iterable[str], low: str, high: str) -> Iterator[EntityRow]:
    """The Resources with an xref of some types between two keys.

    Cost: one look-up in the index for each type, and one for each of these Resources.
    """
    for type in types:
        yield from map(stored_row, db.all(*xref_query(type, low, high)))


def find_past_xrefs(db: Database, types: Iterable[str], low: str, high: str, position: int) -> Iterator[EntityRow]:
    """The Resources with an xref of some types between two keys, as of a position.

    Cost: that of `find_xrefs`, one range of an index for each type, and one row for each Resource that existed then and
    has changed since: those that have not changed have an xref now as well.
    """
    yield from (row for row in find_xrefs(db, types, low, high) if row.since <= position)
    for type in types:
        keys = (id_key_bound(type, low), id_key_bound(type, high))
        replaced_rows = map(stored_row, db.all(_SELECT_REPLACED, (type, *keys, position, position)))
        yield from (row for row in replaced_rows if xref_of(row) is not None)


def xref_query(type: str, low: str, high: str) -> SqlFragment:
    """A query for the rows of the Resources with an xref of a type between two keys."""
    key_range = between("a.id_key", id_key_bound(type, low), id_key_bound(type, high))
    return entities_by_key(type, and_(SqlFragment(_SELECT_XREF_KEYS, (type, XREF_PATH)), key_range))


class XrefTargets:
    """What Resources with an xref show as of a moment. Such a Resource's row is a pointer here.

    position: of the moment; None for that of the database. The Versions of a target are read once for many pointers.
    """

    def __init__(self, db: Database, position: int | None = None) -> None:
        self._db = db
        self._position = position
        self._versions: dict[str, dict[str, EntityRow]] = {}
        self._kept_versions = 0

    def target(self, pointer: EntityRow) -> EntityRow | None:
        """The stored row of the Resource that a pointer leads to; None if the pointer shows nothing."""
        xref = xref_of(pointer)
        return None if xref is None else self._targets([xref]).get(xref)

    def entity(self, pointer: EntityRow, xid: str) -> EntityRow | None:
        """A pointer's Resource, or one of its Versions, as readers see it; None if there is no such Version."""
        return self.resources([pointer])[0] if xid == pointer.xid else self.version(pointer, xids.tree_key(xid))

    def resources(self, rows: Sequence[EntityRow]) -> list[EntityRow]:
        """Rows in which each pointer shows its target's Resource. Cost: at most one statement.

        A pointer that shows nothing stays as it is.
        """
        xrefs = [xref_of(row) for row in rows]
        targets = self._targets(filter(None, xrefs))
        return [
            _shown_resource(row, target) if xref and (target := targets.get(xref)) else row
            for row, xref in zip(rows, xrefs, strict=True)
        ]

    def versions(self, pointer: EntityRow) -> Iterator[EntityRow]:
        """The Versions that a pointer shows, in order."""
        return (shown_version(row, pointer.xid) for row in self._versions_of_target(pointer).values())

    def version_keys(self, pointer: EntityRow) -> Iterator[str]:
        """The tree keys of these Versions, in order."""
        return (xids.tree_key(_shown_xid(row, pointer.xid)) for row in self._versions_of_target(pointer).values())

    def version(self, pointer: EntityRow, key: str) -> EntityRow | None:
        """The Version that a pointer shows with a tree key. Cost: one statement, unless all Versions are known."""
        xref = xref_of(pointer)
        if xref is None or "\0" in key:
            return None
        target_key = xids.tree_key(xref)
        version_key = target_key + key[len(pointer.tree_key) :]
        rows = self._versions.get(xref)
        if rows is None:
            rows = rows_as_of(self._db, [target_key, version_key], self._position)
            if not _is_target(rows.get(target_key), xref):
                return None
        row = rows.get(version_key)
        return None if row is None else shown_version(row, pointer.xid)

    def _targets(self, xrefs: Iterable[str]) -> dict[str, EntityRow]:
        """The Resources that xrefs lead to, by xref, without those that have an xref too."""
        keys = {xids.tree_key(xref) for xref in xrefs}
        rows = rows_as_of(self._db, keys, self._position).values() if keys else ()
        return {row.xid: row for row in rows if _is_target(row, row.xid)}

    def _versions_of_target(self, pointer: EntityRow) -> dict[str, EntityRow]:
        """The stored rows of the Versions that a pointer shows, by tree key, in order."""
        xref = xref_of(pointer)
        if xref is None:
            return {}
        versions = self._versions.get(xref)
        if versions is None:
            if self._kept_versions > MAX_KEPT_VERSIONS:
                self._versions.clear()
                self._kept_versions = 0
            rows = _read_tree(self._db, xref, self._position)
            versions = {row.tree_key: row for row in rows[1:]} if rows and _is_target(rows[0], xref) else {}
            self._versions[xref] = versions
            self._kept_versions += len(versions) + 1
        return versions


def without_resolved(rows: Iterable[EntityRow]) -> Iterator[EntityRow]:
    """Only the stored rows: a document view does not show the content behind an xref."""
    return (row for row in rows if row.private != RESOLVED_XREF)


def resource_types(types: Mapping[str, Collection[str]], xid: str) -> list[str]:
    """The Resource types at or below a path. types: Resource types by Group type."""
    names = xids.segments(xid)[::2]
    return [
        f"{group}.{resource}"
        for group, resources in types.items()
        for resource in resources
        if (group, resource)[: len(names)] == names[:2]
    ]


def _read_tree(db: Database, xid: str, position: int | None) -> list[EntityRow]:
    """A Resource and its Versions, the Resource first."""
    key = xids.tree_key(xid)
    key_range = (key, f'{key}"')
    query = (
        (_SELECT_TREE, key_range)
        if position is None
        else (_SELECT_PAST_TREE, (*key_range, position, *key_range, position, position))
    )
    return sorted(map(stored_row, db.all(*query)))


def _is_target(row: EntityRow | None, xref: str) -> bool:
    """Whether an xref shows a row that is stored under its key: the xid is the same, and has no xref itself."""
    return row is not None and row.xid == xref and xref_of(row) is None


def _shown_resource(pointer: EntityRow, target: EntityRow) -> EntityRow:
    """The Resource of a target under the name of a pointer, with the pointer's private members."""
    (name, id), _ = loads(pointer.attributes).items()
    attributes = loads(target.attributes)
    meta = {name: id, "xref": target.xid, **_without_member(attributes["meta"], name)}
    text = dumps({**attributes, name: id, "meta": meta}).decode()
    return _renamed(target, pointer.xid, text)._replace(private=pointer.private, born=pointer.born)


def shown_version(version: EntityRow, resource: str) -> EntityRow:
    """A Version of a target under the name of the Resource whose xref leads there. resource: its xid."""
    attributes: dict[str, Json] = loads(version.attributes)
    name = next(iter(attributes))  # the id of the Resource comes first
    text = dumps({**attributes, name: xids.entity_id(resource)}).decode()
    return _renamed(version, _shown_xid(version, resource), text)._replace(private=RESOLVED_XREF, born=None)


def _shown_xid(version: EntityRow, resource: str) -> str:
    return f"{resource}/versions/{version.id}"


def _renamed(row: EntityRow, xid: str, attributes: str) -> EntityRow:
    tree_key = xids.tree_key(xid)
    return row._replace(
        tree_key=tree_key,
        xid=xid,
        type=xids.type_of(xid),
        id_key=id_key(tree_key),
        attributes=attributes,
        meta=0,
    )


def _without_member(members: Mapping[str, Json], name: str) -> dict[str, Json]:
    return {key: value for key, value in members.items() if key != name}
