"""Verifies that the attribute index, which filters and sorts current entities, matches the rows.

The index is in the order of values, the rows in that of entities. So both are summed up, and only where the sums
differ, the leaves of each entity are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.damage import UnreadableRow
from annals.commands.store.database import sql
from annals.commands.store.log import Store
from annals.commands.verify.unchecked_rows import catch_unreadable, open_snapshot
from annals.commands.verify.verify_log import ProgressCallback, VerificationFinding
from annals.domain.values.json_text import loads
from annals.projections.database import drivers
from annals.projections.database.drivers import Database
from annals.projections.entities.attribute_index import INDEX_NAME
from annals.projections.entities.changed_rows import changed_keys, rows_as_of
from annals.projections.entities.id_keys import id_key
from annals.projections.entities.leaves import OMITTED_LEAVES, OMITTED_PATH, UNINDEXED_TYPES, leaves
from annals.projections.entities.rows import EntityRow, compress_attributes, decompress_attributes
from annals.projections.entities.tables import tables
from annals.projections.log.positions import find_position

_SELECT_ROWS: Final = (
    "SELECT tree_key, type, compressed_attributes, since FROM entity WHERE tree_key > ? ORDER BY tree_key LIMIT ?"
)
_SELECT_PATHS: Final = "SELECT number, type, path FROM attribute_path"
_SELECT_LEAVES: Final = "SELECT path, value, id_key FROM attribute"
_SELECT_OMITTED: Final = (
    "SELECT p.type, a.id_key FROM attribute_path AS p JOIN attribute AS a ON a.path = p.number WHERE p.path = ?"
)
_SELECT_COUNT: Final = "SELECT (SELECT count(*) FROM attribute), (SELECT coalesce(max(last), 0) FROM interaction)"
_SELECT_LEAVES_OF: Final = (
    "SELECT p.path FROM attribute_path AS p JOIN attribute AS a ON a.path = p.number"
    " WHERE p.type = ? AND a.id_key = ? AND (p.path, a.value) IN (VALUES {})"
)
#: No tree key is greater.
_LAST_KEY: Final = "\U0010ffff"
#: The maximum number of paths in a finding.
_MAX_LISTED_PATHS: Final = 3
_SUM_BITS: Final = 64

#: Tree key, type, compressed attributes and position of a row.
_Row = tuple[Any, Any, Any, Any]


def verify_index(store: Store, progress: ProgressCallback = lambda done, total: None) -> Iterator[VerificationFinding]:
    """Each entity whose leaves are not all in the index, with their paths, and leaves that no entity results in.

    Cost: O(leaves). Does not check rows that another program has left: they are rebuilt before anyone reads them.
    progress: receives the number of leaves after each page.
    """
    unreadable_messages, log_end = list[str](), 0
    with open_snapshot(store) as connection, catch_unreadable(unreadable_messages.append):
        if not tables().exist(connection):
            return
        stored_count, log_end = sql.run(connection, _SELECT_COUNT).fetchone()
        try:
            rows = _IndexedRows(connection, log_end)
        except UnreadableRow as error:
            yield VerificationFinding(log_end, f"the index over attributes: {error}")
            return
        expected_count, expected_sum = 0, 0
        for page in rows.pages():
            for row in page:
                row_leaves = rows.expected_leaves(row)
                expected_count += len(row_leaves)
                expected_sum += _sum_of_row(row, row_leaves)
            progress(expected_count, stored_count)
        if expected_sum % (1 << _SUM_BITS) != _stored_sum(drivers.database_of(connection)):
            yield from _missing_leaves(connection, rows, log_end)
        if stored_count != expected_count:
            yield VerificationFinding(
                log_end,
                f"the index over attributes has {stored_count} leaves, but the entities result in {expected_count}",
            )
        yield from _storage_damage(connection, log_end)
    for message in unreadable_messages:
        yield VerificationFinding(log_end, f"the database cannot read the index over attributes: {message}")


class _IndexedRows:
    """The rows of entities as of the position of the index. Raises: UnreadableRow."""

    def __init__(self, connection: Connection, log_end: int) -> None:
        self._connection = connection
        self._earlier_rows = _rows_before_index_end(drivers.database_of(connection), log_end)
        self._omitted = set(sql.run(connection, _SELECT_OMITTED, (OMITTED_PATH,)).fetchall())

    def pages(self) -> Iterator[list[_Row]]:
        """All rows, by tree key."""
        key, is_last = "", False
        while not is_last:
            page = sql.run(self._connection, _SELECT_ROWS, (key, sql.CHUNK)).fetchall()
            is_last = len(page) < sql.CHUNK or not isinstance(page[-1][0], str)
            end = _LAST_KEY if is_last else page[-1][0]
            yield [row for row in page if row[0] not in self._earlier_rows] + [
                (row.tree_key, row.type, compress_attributes(row.attributes), row.since)
                for changed, row in self._earlier_rows.items()
                if row and key < changed <= end
            ]
            key = end

    def expected_leaves(self, row: _Row) -> Mapping[str, bytes]:
        """The leaves of a row; none if its text is damaged, which the check of the row itself reports.

        An entity may be omitted whatever it has, because the limit may have been different.
        """
        key, type, attributes, _ = row
        if type in UNINDEXED_TYPES or not isinstance(key, str):
            return {}
        if (type, id_key(key)) in self._omitted:
            return OMITTED_LEAVES
        try:
            return leaves(loads(decompress_attributes(attributes)))
        except (ValueError, TypeError, AttributeError):
            return {}


def _rows_before_index_end(db: Database, log_end: int) -> dict[str, EntityRow | None]:
    """The entities whose last events the index does not have, with their rows as of its position."""
    position = find_position(db, INDEX_NAME)
    keys = changed_keys(db, position, log_end) if position is not None else []
    return {**dict.fromkeys(keys), **(rows_as_of(db, keys, position) if keys else {})}


def _sum_of_row(row: _Row, row_leaves: Mapping[str, bytes]) -> int:
    type = row[1]
    key = id_key(row[0]) if row_leaves else ""
    return sum(_leaf_hash((type, path), value, key) for path, value in row_leaves.items())


def _stored_sum(db: Database) -> int:
    paths = {number: (type, path) for number, type, path in db.all(_SELECT_PATHS)}
    leaves = db.stream(_SELECT_LEAVES)
    return sum(_leaf_hash(paths.get(number), value, key) for number, value, key in leaves) % (1 << _SUM_BITS)


def _leaf_hash(path: tuple[str, str] | None, value: Any, key: Any) -> int:
    """A number for a leaf: equal sums mean that two sets of leaves are equal, in whatever order.

    Python's own hash has a new key in each process, and is ten times as fast as a cryptographic one. It is the same for
    a text and for its bytes, hence the types. path: with its type.
    """
    return hash((path, value, key, value.__class__, key.__class__))


def _missing_leaves(connection: Connection, rows: _IndexedRows, log_end: int) -> Iterator[VerificationFinding]:
    db = drivers.database_of(connection)
    for row in (row for page in rows.pages() for row in page):
        key, type, _, since = row
        row_leaves = rows.expected_leaves(row)
        stored_paths = _stored_paths(db, type, key, row_leaves) if row_leaves else set()
        if missing_paths := sorted(row_leaves.keys() - stored_paths):
            position = since if isinstance(since, int) else log_end
            yield VerificationFinding(position, _describe(key, missing_paths))


def _stored_paths(db: Database, type: str, key: str, row_leaves: Mapping[str, bytes]) -> set[str]:
    """The paths of those leaves of an entity that the index has."""
    statement = _SELECT_LEAVES_OF.format(", ".join("(?, ?)" for _ in row_leaves))
    leaf_values = (each for leaf in row_leaves.items() for each in leaf)
    return {path for (path,) in db.all(statement, (type, id_key(key), *leaf_values))}


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
