"""Verifies that the attribute index, which filters and sorts current entities, matches the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store import sql
from annals.commands.store.damage import UnreadableRow
from annals.commands.store.log import Store
from annals.commands.verify.unchecked_rows import catch_unreadable, open_snapshot
from annals.commands.verify.verify_log import ProgressCallback, VerificationFinding
from annals.domain.values.json_text import loads
from annals.projections.database import drivers
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.entities.changed_rows import changed_keys, rows_as_of
from annals.projections.entities.leaves import OMITTED_PATH, PRESENT_LEAF, UNINDEXED_TYPES, leaves
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.tables import tables
from annals.projections.log.positions import find_position

_SELECT_ROWS: Final = (
    "SELECT tree_key, type, attributes, since FROM entity WHERE tree_key > ? ORDER BY tree_key LIMIT ?"
)
_SELECT_LEAVES: Final = (
    "SELECT tree_key, path, type, text, number, remainder FROM attribute WHERE tree_key > ? AND tree_key <= ?"
)
_SELECT_COUNT: Final = "SELECT (SELECT count(*) FROM attribute), (SELECT coalesce(max(last), 0) FROM interaction)"
#: No tree key is greater.
_LAST_KEY: Final = "\U0010ffff"
#: The maximum number of paths in a finding.
_MAX_LISTED_PATHS: Final = 3

#: The index columns of one path: type, text, number, remainder.
_Leaf = tuple[Any, Any, Any, Any]
_Index = dict[str, dict[str, _Leaf]]


def verify_index(store: Store, progress: ProgressCallback = lambda done, total: None) -> Iterator[VerificationFinding]:
    """Each entity whose leaves do not match its row, with their paths, and leaves without an entity.

    Cost: O(leaves), in pages. Does not check rows that another program has left: they are rebuilt before anyone reads
    them. progress: receives the number of leaves after each page.
    """
    unreadable_messages, log_end = list[str](), 0
    with open_snapshot(store) as connection, catch_unreadable(unreadable_messages.append):
        if not tables().exist(connection):
            return
        stored_count, log_end = sql.run(connection, _SELECT_COUNT).fetchone()
        expected_count, earlier_rows = 0, dict[str, EntityRow | None]()
        try:
            earlier_rows = _rows_before_index_end(connection)
        except UnreadableRow as error:
            yield VerificationFinding(log_end, f"the index over attributes: {error}")
        for page, index in _read_pages(connection, earlier_rows):
            for key, type, attributes, since in page:
                stored_leaves = index.get(key, {})
                expected = _expected_leaves(type, attributes, OMITTED_PATH in stored_leaves)
                expected_count += len(expected)
                if differing_paths := _differing_paths(expected, stored_leaves):
                    yield VerificationFinding(
                        since if isinstance(since, int) else log_end, _describe(key, differing_paths)
                    )
            progress(expected_count, stored_count)
        if stored_count != expected_count:
            yield VerificationFinding(
                log_end,
                f"the index over attributes has {stored_count} leaves, but the entities result in {expected_count}",
            )
        yield from _storage_damage(connection, log_end)
    for message in unreadable_messages:
        yield VerificationFinding(log_end, f"the database cannot read the index over attributes: {message}")


def _read_pages(
    connection: Connection, earlier_rows: Mapping[str, EntityRow | None]
) -> Iterator[tuple[Sequence[Any], _Index]]:
    """Rows of entities by key, as of the position of the index, with the leaves of the same keys."""
    key, is_last = "", False
    while not is_last:
        page = sql.run(connection, _SELECT_ROWS, (key, sql.CHUNK)).fetchall()
        is_last = len(page) < sql.CHUNK or not isinstance(page[-1][0], str)
        end = _LAST_KEY if is_last else page[-1][0]
        index: _Index = {}
        for owner, path, *leaf in sql.run(connection, _SELECT_LEAVES, (key, end)):
            index.setdefault(owner, {})[path] = (leaf[0], leaf[1], leaf[2], leaf[3])
        rows = [row for row in page if row[0] not in earlier_rows]
        rows += [
            (row.tree_key, row.type, row.attributes, row.since)
            for changed, row in earlier_rows.items()
            if row and key < changed <= end
        ]
        yield rows, index
        key = end


def _rows_before_index_end(connection: Connection) -> dict[str, EntityRow | None]:
    """The entities whose last events the index does not have, with their rows as of its position."""
    db = drivers.database_of(connection)
    position = find_position(db, INDEX_NAME)
    keys = changed_keys(db, position) if position is not None else []
    return {**dict.fromkeys(keys), **(rows_as_of(db, keys, position) if keys else {})}


def _expected_leaves(type: Any, attributes: Any, is_omitted: bool) -> dict[str, _Leaf]:
    """The expected leaves of a row; none if its text is damaged, which the check of the row itself reports.

    is_omitted: the index has the marker leaf, which is valid for any row, because the limit may have been different.
    """
    if type in UNINDEXED_TYPES:
        return {}
    if is_omitted:
        return {OMITTED_PATH: (type, *PRESENT_LEAF)}
    try:
        return {path: (type, *leaf) for path, leaf in leaves(loads(attributes)).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _differing_paths(expected: Mapping[str, _Leaf], stored_leaves: Mapping[str, _Leaf]) -> list[str]:
    paths = expected.keys() | stored_leaves.keys()
    return sorted(str(path) for path in paths if expected.get(path) != stored_leaves.get(path))


def _describe(key: Any, paths: Sequence[str]) -> str:
    remainder_text = f" and {len(paths) - _MAX_LISTED_PATHS} more" if len(paths) > _MAX_LISTED_PATHS else ""
    return (
        f"the index over attributes is not what {key!r} results in at"
        f" {', '.join(paths[:_MAX_LISTED_PATHS])}{remainder_text}"
    )


def _storage_damage(connection: Connection, log_end: int) -> Iterator[VerificationFinding]:
    """The faults that SQLite finds in the storage of the read model, without checking the rows' content."""
    for table in tables() if connection.dialect.name == "sqlite" else ():
        for (message,) in sql.run(connection, f"PRAGMA integrity_check({table.name})").fetchall():
            if message != "ok":
                yield VerificationFinding(
                    log_end, f"the file is damaged in {table.name}: {' '.join(str(message).split())}"
                )
