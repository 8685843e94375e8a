"""Resolves Resources with an xref: they show the rows of their targets under their own names.

The row of such a Resource has only its ids and `meta.xref`. Its target is resolved for each response, so it never lags
behind. A target that does not exist, or has an xref itself, shows nothing.
Spec: core 1.0-rc4, "Cross Referencing Resources".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json, dumps, loads
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import SqlFragment, and_, between, entities_by_key
from annals.projections.entities.id_keys import id_key, id_key_bound
from annals.projections.entities.index_paths import PATH_NUMBER
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row

#: The `private` of a Version shown through an xref; no stored row has it.
RESOLVED_XREF: Final = '{"pointed":true}'

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


def resolve_xrefs(db: Database, rows: Iterable[EntityRow], position: int | None = None) -> dict[str, EntityRow]:
    """The rows that xrefs show, by tree key: Resources and their Versions. position: of the moment; None for now.

    An xref without a target shows nothing, and is omitted.
    """
    resolved_rows: dict[str, EntityRow] = {}
    for row in rows:
        target = xref_of(row)
        if target is not None:
            resolved_rows |= {
                resolved_row.tree_key: resolved_row
                for resolved_row in _rows_under_pointer(row, target, _read_tree(db, target, position))
            }
    return resolved_rows


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
    rows = sorted(map(stored_row, db.all(*query)))
    return rows if rows and rows[0].xid == xid else []


def _rows_under_pointer(pointer: EntityRow, xref: str, tree: list[EntityRow]) -> Iterator[EntityRow]:
    """A target's rows, renamed to the Resource that points to it; nothing if the target has an xref too."""
    if not tree or xref_of(tree[0]) is not None:
        return
    pointer_attributes: dict[str, Json] = loads(pointer.attributes)
    (name, id), _ = pointer_attributes.items()
    for row in tree:
        attributes = {**loads(row.attributes), name: id}
        xid = pointer.xid + row.xid[len(xref) :]
        if row is tree[0]:
            attributes["meta"] = {name: id, "xref": xref, **_without_member(attributes["meta"], name)}
        tree_key = xids.tree_key(xid)
        yield row._replace(
            tree_key=tree_key,
            xid=xid,
            type=xids.type_of(xid),
            id_key=id_key(tree_key),
            attributes=dumps(attributes).decode(),
            private=pointer.private if row is tree[0] else RESOLVED_XREF,
            born=pointer.born if row is tree[0] else None,
            meta=0,
        )


def _without_member(members: Mapping[str, Json], name: str) -> dict[str, Json]:
    return {key: value for key, value in members.items() if key != name}
