"""Rebuilds the read model from the log, while the old one continues to serve and to be updated.

It fills a second set of tables next to the live one and compares it with the log's state hash. Then, under the write
lock, it brings the tables up to date and renames them into place in one transaction. A rebuild that dies leaves its
tables behind, unused; the next one drops them. On SQLite, writers alternate with the batches, and wait once for each
index.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import OperationalError
from sqlalchemy.schema import CreateIndex

from annals.commands.store import hashes
from annals.commands.store.database.driver_errors import is_lock_timeout
from annals.commands.store.database.engine import WRITING
from annals.commands.store.log import Store
from annals.commands.store.log_end import LogEnd
from annals.commands.store.mapper import assemble_after_image
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.attribute_index import index_name
from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.rebuild_lock import rebuild_lock
from annals.projections.entities.rows import decompress_attributes
from annals.projections.entities.tables import ReadModelTables, add_primary_keys, drop_primary_keys, pack, tables
from annals.projections.log import positions

#: Events per transaction: on SQLite, writers wait some tens of milliseconds for one.
BATCH: Final = 500
#: Entities per transaction that fills the index, for the same reason.
INDEX_BATCH: Final = 2000
#: The maximum number of swap attempts while readers of a long snapshot block it, and the seconds between two attempts.
SWAP_ATTEMPTS: Final = 900
SWAP_PAUSE: Final = 1.0
#: How long a swap waits for such readers before it gives up, so that new readers queued behind it can continue.
SWAP_LOCK_TIMEOUT: Final = "200ms"
#: How long a rebuild waits, before the swap, for a lock that only excludes vacuums and blocks no one else. Longer than
#: `deadlock_timeout`, 1 s by default, after which PostgreSQL cancels its own vacuum of a table.
VACUUM_LOCK_TIMEOUT: Final = "3s"

#: Called with the position reached and the final position.
ProgressCallback = Callable[[int, int], None]

_LEFTOVER_TABLE: Final = re.compile("(?:" + "|".join(table.name for table in tables()) + r")_r[0-9a-f]{8}(?:_old)?\Z")
_SELECT_IMAGES: Final = "SELECT xid, type, epoch, compressed_attributes, private FROM {}"
_SELECT_STATE_HASH: Final = "SELECT state FROM interaction WHERE last = ?"


class RebuildDiverged(RuntimeError):
    """The rows built from the log do not sum to the log's own state hash: the log is damaged."""


@dataclass(frozen=True, slots=True)
class PrecomputedRows:
    """The read model as of the end of an interaction, computed outside this program.

    insert: commits all rows to a set of empty tables of a database. On PostgreSQL they have no primary keys yet, which
    cost less once the rows are inserted.
    """

    position: int
    insert: Callable[[Engine, ReadModelTables], None]


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The report of a rebuild. position: of the last event in the new tables when they were swapped in."""

    events: int
    position: int
    seconds: float


def rebuild(
    store: Store,
    progress: ProgressCallback | None = None,
    precomputed: PrecomputedRows | None = None,
    max_leaves: int = MAX_LEAVES,
) -> RebuildReport:
    """Replaces the read model's tables by new ones. Time grows with the log, memory does not.

    precomputed: the initial content, instead of empty tables; it is verified like the rest. max_leaves: see
    `EntityProjection`.
    Raises: RebuildDiverged; TimeoutError when readers hold the old tables for `SWAP_ATTEMPTS` times `SWAP_PAUSE`.
    """
    with rebuild_lock(store):
        return _run_rebuild(store, progress, precomputed, max_leaves)


def rebuild_if_stale(
    store: Store, max_leaves: int = MAX_LEAVES, progress: ProgressCallback | None = None
) -> RebuildReport | None:
    """Rebuilds a read model whose position differs from the log's end, such as a dropped or restored one.

    Processes that open a store at the same time rebuild it only once. max_leaves: see `EntityProjection`. Returns None
    if there was nothing to do. Raises: as `rebuild`.
    """
    if not _is_current(store):
        with rebuild_lock(store):
            if not _is_current(store):
                return _run_rebuild(store, progress, None, max_leaves)
    return None


def _is_current(store: Store) -> bool:
    # Under the write lock, because a commit between the two queries would cause a needless rebuild.
    with store.writing() as transaction:
        return (
            positions.read_position(drivers.database_of(transaction.connection), EntityProjection.name)
            == transaction.log_end.position
        )


def _run_rebuild(
    store: Store, progress: ProgressCallback | None, precomputed: PrecomputedRows | None, max_leaves: int
) -> RebuildReport:
    started_at = time.monotonic()
    new_rebuild = Rebuild(store, progress or (lambda done, total: None), max_leaves)
    new_rebuild.create_tables()
    if precomputed:
        new_rebuild.load(precomputed)
    else:
        new_rebuild.fill_rows()
        new_rebuild.fill_index()
    new_rebuild.fill()
    new_rebuild.create_indexes()
    new_rebuild.fill()
    new_rebuild.verify()
    new_rebuild.swap()
    return RebuildReport(new_rebuild.events, new_rebuild.position, time.monotonic() - started_at)


class Rebuild:
    """A second set of tables, until it replaces the live one."""

    def __init__(self, store: Store, progress: ProgressCallback, max_leaves: int) -> None:
        suffix = f"_r{token_hex(4)}"
        self.position = 0
        self.events = 0
        self._state_hash = hashes.EMPTY_HASH
        self._store = store
        self._progress = progress
        self._name = f"{EntityProjection.name}{suffix}"
        self._tables = tables(suffix)
        self._projection = EntityProjection(self._name, self._tables, max_leaves, max_behind=0)
        self._row_projection = EntityProjection(self._name, self._tables, max_leaves, max_behind=None)

    def create_tables(self) -> None:
        """Creates the empty tables and drops those of rebuilds that died."""
        with self._transaction() as connection:
            tables().create(connection)
        self._drop_leftovers()
        with self._transaction() as connection:
            self._tables.create_bare(connection)

    def load(self, precomputed: PrecomputedRows) -> None:
        """Inserts precomputed rows."""
        with self._transaction() as connection:
            drop_primary_keys(connection, self._tables.loaded_without_keys())
        precomputed.insert(self._store.engine, self._tables)
        with self._transaction() as connection:
            add_primary_keys(connection, self._tables.loaded_without_keys())
            db = drivers.database_of(connection)
            positions.save_position(db, index_name(self._name), precomputed.position)
        self._advance(precomputed.position, self._store.log_end().position)

    def fill_rows(self) -> None:
        """Applies the log up to its end, in separate transactions, without the attribute index."""
        self._apply_log(self._row_projection)
        for table in self._tables.loaded_without_keys():
            with self._transaction() as connection:
                pack(connection, [table])

    def fill_index(self) -> None:
        """Indexes the rows, in separate transactions. Leaves that later events replaced are never computed."""
        last_key: str | None = ""
        with self._transaction() as connection:
            drop_primary_keys(connection, [self._tables.attribute])
        while last_key is not None:
            with self._transaction() as connection:
                last_key = self._projection.index_rows(connection, last_key, INDEX_BATCH)
        with self._transaction() as connection:
            add_primary_keys(connection, [self._tables.attribute])

    def fill(self) -> None:
        """Applies the rest of the log, in separate transactions."""
        self._apply_log(self._projection)

    def _apply_log(self, projection: EntityProjection) -> None:
        total = self._store.log_end().position
        while batch := self._store.events(self.position, BATCH):
            with self._transaction() as connection:
                projection.apply(connection, batch)
            self._advance(batch[-1][0], total)

    def create_indexes(self) -> None:
        """Creates the indexes, one per transaction."""
        for index in self._tables.indexes():
            with self._transaction() as connection:
                connection.execute(CreateIndex(index))
        with self._transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"ANALYZE {', '.join(table.name for table in self._tables)}")

    def verify(self) -> None:
        """Compares the rows with the state hash of the last interaction they contain."""
        with self._store.engine.begin() as connection:
            self._state_hash = state_hash(connection, self._tables)
            if self._state_hash != _state_hash_at(connection, self.position):
                raise RebuildDiverged(f"the entities at position {self.position} do not add up to the log's state hash")

    def swap(self) -> None:
        """Brings the tables up to date and replaces the live ones, between two commands."""
        for _ in range(SWAP_ATTEMPTS):
            try:
                self._cancel_vacuums()
                with self._store.writing() as transaction:
                    last_position = self._catch_up(transaction.connection, transaction.log_end)
                    self._rename_tables(transaction.connection, last_position)
            except OperationalError as error:
                if not is_lock_timeout(error.orig):
                    raise
                time.sleep(SWAP_PAUSE)
            else:
                break
        else:
            raise TimeoutError("readers still use the tables; try again")
        self._advance(last_position, last_position)
        self._drop_leftovers()

    def _cancel_vacuums(self) -> None:
        # In a separate transaction: a vacuum started by a user continues, and writers need not wait for it.
        if self._store.engine.dialect.name == "postgresql":
            names = ", ".join(table.name for table_set in (tables(), self._tables) for table in table_set)
            with self._transaction() as connection:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{VACUUM_LOCK_TIMEOUT}'")
                connection.exec_driver_sql(f"LOCK TABLE {names} IN SHARE UPDATE EXCLUSIVE MODE")

    def _catch_up(self, connection: Connection, log_end: LogEnd) -> int:
        """Applies and verifies the events since the check; returns the log's last position. Raises: RebuildDiverged."""
        position, state = self.position, self._state_hash
        while batch := self._store.events(position, BATCH):
            keys = {xids.tree_key(event.xid) for _, event in batch}
            old_hashes = [*_row_hashes(connection, self._tables, keys)]
            self._projection.apply(connection, batch)
            state = hashes.update_state_hash(state, old_hashes, _row_hashes(connection, self._tables, keys))
            position = batch[-1][0]
        if (position, state) != (log_end.position, log_end.state):
            raise RebuildDiverged(
                f"the entities at position {position} are not those of the log's end at {log_end.position}"
            )
        return position

    def _rename_tables(self, connection: Connection, position: int) -> None:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{SWAP_LOCK_TIMEOUT}'")
        for live_table, new_table in zip(tables(), self._tables, strict=True):
            connection.exec_driver_sql(f"ALTER TABLE {live_table.name} RENAME TO {new_table.name}_old")
            connection.exec_driver_sql(f"ALTER TABLE {new_table.name} RENAME TO {live_table.name}")
        db = drivers.database_of(connection)
        for name_of in (str, index_name):
            positions.save_position(db, name_of(EntityProjection.name), position)
            positions.delete_position(db, name_of(self._name))

    def _drop_leftovers(self) -> None:
        # A transaction for each table, because SQLite needs time to free the pages of a large table.
        for name in filter(_LEFTOVER_TABLE.match, inspect(self._store.engine).get_table_names()):
            with self._transaction() as connection:
                connection.exec_driver_sql(f"DROP TABLE {name}")
        names = f"{EntityProjection.name}_r"
        with self._transaction() as connection:
            drivers.database_of(connection).run(
                "DELETE FROM projection WHERE substr(name, 1, ?) = ?", (len(names), names)
            )

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        # Without the write lock: on PostgreSQL no one else uses these tables, and SQLite locks the file itself.
        with self._store.engine.execution_options(**{WRITING: True}).begin() as connection:
            yield connection

    def _advance(self, position: int, total: int) -> None:
        self.events += position - self.position
        self.position = position
        self._progress(min(position, total), total)


def state_hash(connection: Connection, of_tables: ReadModelTables) -> bytes:
    """The state hash of the entities in a set of tables. Cost: O(entities)."""
    return hashes.update_state_hash(hashes.EMPTY_HASH, (), _row_hashes(connection, of_tables))


def _row_hashes(
    connection: Connection, target_tables: ReadModelTables, keys: Collection[str] | None = None
) -> Iterator[bytes]:
    """The hash of each row, or of the rows with some tree keys."""
    db, images = drivers.database_of(connection), _SELECT_IMAGES.format(target_tables.entity.name)
    sql = f"{images} WHERE {db.in_list('tree_key')}"
    rows = db.stream(images) if keys is None else db.all(sql, [db.list_parameter(keys)])
    for xid, type_, epoch, attributes, private in rows:
        image = assemble_after_image(xid, type_, epoch, decompress_attributes(attributes).encode(), private.encode())
        yield hashes.entity_hash(image)


def _state_hash_at(connection: Connection, position: int) -> bytes:
    row = drivers.database_of(connection).one(_SELECT_STATE_HASH, (position,))
    return bytes(row[0]) if row else hashes.EMPTY_HASH
